"""A run's folder and what belongs to it: manifest, identities of stages, starts, stopping, progress, environment."""
