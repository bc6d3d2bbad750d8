"""Semantic segmentation: data sets, windows, batches."""
