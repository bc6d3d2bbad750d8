"""Finished runs at work: score, predict, export, pack."""
