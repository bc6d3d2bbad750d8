"""What to train, in what order, on whose labels. Nothing here trains."""
