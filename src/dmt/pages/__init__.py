"""Self-contained HTML pages and their charts, independent of runs, nets and data."""
