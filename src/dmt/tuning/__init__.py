"""Tuning: options chosen on validation images, with safeguards against choosing by chance."""
