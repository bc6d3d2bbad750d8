"""Pseudo labels: who labels, what is kept, where it lies."""
