"""Audits of finished runs: labels that are probably wrong, and images that are worth labeling."""
