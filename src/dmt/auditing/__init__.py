"""Labels that are probably wrong, and images worth a label, found in a finished run."""
