"""Nets, and how their parameters start."""
