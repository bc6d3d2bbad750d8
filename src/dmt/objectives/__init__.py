"""What one step descends, by who teaches: `truth` (labels), `stored` (an earlier stage), `itself` (the net, now),
`slow` (its slow copy), `peers` (another net)."""
