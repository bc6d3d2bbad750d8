"""One stage from its first step to its last: the only package with an optimizer; writes into a stage's folder."""
