"""Training and inference of one stage: the only package with an optimizer; it writes into a stage's folder."""
