"""Computations on tensors that know nothing of files, configurations or tasks."""
