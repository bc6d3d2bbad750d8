"""What one step descends, by who teaches: `truth` (labels), `stored` (an earlier stage), `itself` (the net, now),
`adaptive` (the same, by what it remembers), `guessing` (the same, by soft labels), `slow` (its slow copy), `peers`
(another net)."""
