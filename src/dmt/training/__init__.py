"""One stage, from its first step to its last: the only package with an optimizer. Writes into the stage's folder."""
