"""What one step descends, by who teaches: `truth` (labels), `stored` (an earlier stage), `itself` (the net, now),
`adaptive` (the same, by what it remembers), `guessing` (the same, by soft labels), `slow` (its slow copy), `remembered`
(itself, earlier), `peers` and `two_nets` (another net), `noisy` (labels that may be wrong). `self_supervised` has no
classes yet."""
