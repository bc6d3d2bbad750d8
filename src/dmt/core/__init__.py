"""Tensors in, tensors out: no files, no configuration, no task."""
