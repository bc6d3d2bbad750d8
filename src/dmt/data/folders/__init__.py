"""A user's folder of images: its layout, its contents, and the doctor that checks them."""
