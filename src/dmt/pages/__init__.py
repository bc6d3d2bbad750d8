"""Pages to look at: one self-contained HTML file each. Knows nothing of runs, nets or data."""
