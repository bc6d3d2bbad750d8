"""A user's own images: layouts, contents, and the doctor that looks at them."""
