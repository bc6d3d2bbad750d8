"""What came out of runs, read from their files: scores, verdict and guard, tables."""
