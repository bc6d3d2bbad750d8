"""Runs as one HTML page, made of their files alone."""
