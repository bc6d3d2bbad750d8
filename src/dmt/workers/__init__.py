"""Worker processes that carry out orders of a run's main process, on this machine or on a Ray cluster."""
