"""A user's folder of images: layouts, contents, and the doctor that looks at them."""
