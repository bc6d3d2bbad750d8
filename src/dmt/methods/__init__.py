"""Methods as plans: what to train, in what order, on whose labels. Nothing is trained here."""
