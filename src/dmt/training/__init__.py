"""One stage, from its first step to its last: the only package with an optimizer. It writes into that stage's folder."""
