"""The two tasks, classification and segmentation: everything that differs between them, and nothing else."""
