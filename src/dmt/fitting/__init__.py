"""Training of a run: `fit`, which trains the stages that are still missing."""
