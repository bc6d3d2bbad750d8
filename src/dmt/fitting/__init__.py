"""Training what a run still lacks: `fit`, stage by stage."""
