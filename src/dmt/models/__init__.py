"""Nets by name, and their initial parameters."""
