"""Processes that are handed orders by the one that runs a run, on this machine or on a Ray cluster."""
