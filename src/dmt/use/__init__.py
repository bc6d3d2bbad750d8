"""What can be done with finished runs: score, predict, export, pack."""
