"""The only room with an optimizer, and the only one that writes into a run."""
