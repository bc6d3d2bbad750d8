"""Images that get one label each: data sets, splits, augmentation, batches."""
