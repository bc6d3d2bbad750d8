"""What differs between images and pixels, and nothing else."""
