"""Pixel labels as indexed images in the colors of their classes."""

import numpy as np
from PIL import Image

PALE = (224, 224, 224)
"""The color of pixels without a label."""

Color = tuple[int, int, int]
"""(red, green, blue)."""

Palette = tuple[Color, ...]
"""The color of each class."""


def indexed(labels: np.ndarray, palette: Palette) -> Image.Image:
    """Return labels (H, W) uint8 as an image in the colors of their classes; 255 is light gray."""
    image = Image.fromarray(labels)
    image.putpalette(flat(palette))
    return image


def flat(palette: Palette) -> list[int]:
    """Return a Pillow palette of 768 numbers: the classes' colors, then black, and light gray for 255."""
    rows = [*palette[:255], *[(0, 0, 0)] * (255 - len(palette[:255])), PALE]
    return [number for row in rows for number in row]
