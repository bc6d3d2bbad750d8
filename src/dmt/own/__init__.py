"""Choices for a folder of your images: net, size, schedule, and how long it will take."""
