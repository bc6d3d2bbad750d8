"""Automatic choices for a folder of your images: net, image size and schedule, and a forecast of the time."""
