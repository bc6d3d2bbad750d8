"""Data sets, splits, augmentation and batches. Data folders are only read, never written to."""
