"""What one step descends, filed by who teaches: `truth` (labels), `stored` (pseudo labels of an earlier stage)."""
