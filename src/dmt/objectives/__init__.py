"""Losses of one training step, by the teacher: `truth` (given labels), `stored` (pseudo labels of an earlier stage),
`itself` (the net's own predictions), `adaptive` (the same, with adaptive thresholds), `guessing` (the same, as soft
labels), `slow` and `slow_pasted` (the net's EMA copy), `remembered` (the net's earlier predictions), `peers` and
`two_nets` (another net), `noisy` (given labels that may be wrong), `judged` (a discriminator), `flaws` (another net,
chosen by a flaw detector). `perturbed` and `auxiliary` perturb features inside the net, `self_supervised` needs no
labels at all."""
