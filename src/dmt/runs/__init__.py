"""One run's folder and what goes with it: manifest, identity of stages, starts, stopping, progress, environment."""
