"""Pseudo labels: making, selecting and storing them."""
