"""Image classification: data sets, splits, augmentation, batches."""
