"""Images whose every pixel gets a label: data sets, windows, batches."""
