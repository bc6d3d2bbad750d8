"""What one step descends, by who teaches: `truth` (labels), `stored` (an earlier stage), `itself` (the net, now),
`adaptive` (the same, by what it remembers), `guessing` (the same, by soft labels), `slow` and `slow_pasted` (its slow
copy), `remembered` (itself, earlier), `peers` and `two_nets` (another net), `noisy` (labels that may be wrong),
`judged` (a judge), `flaws` (another net, as a judge decides); `perturbed` and `auxiliary` change features inside the
net. `self_supervised` has no classes yet."""
