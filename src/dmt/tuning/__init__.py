"""Options chosen on validation images, in a way that does not choose noise."""
