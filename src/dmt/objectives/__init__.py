"""What one step descends, by who teaches: `truth` (labels), `stored` (an earlier stage), `itself` (the net, now),
`slow` and `slow_pasted` (its slow copy), `peers` (another net), `judged` (a judge), `flaws` (another net, as a judge
decides); `perturbed` and `auxiliary` change features inside the net."""
