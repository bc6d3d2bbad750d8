"""Data sets, splits, augmentation, and batches made of them. Reads data folders, never writes into them."""
