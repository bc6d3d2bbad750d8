"""What one step descends, by who teaches: `truth` (labels), `stored` (an earlier stage), `itself` (the net, now),
`slow` (its slow copy), `remembered` (itself, earlier), `peers` and `two_nets` (another net), `noisy` (labels that may
be wrong). `self_supervised` has no classes yet."""
