"""Reports on runs, made from their files alone: an HTML page, and scalars for TensorBoard."""
