"""Results of runs, read from their files: scores, verdict, guard and tables."""
