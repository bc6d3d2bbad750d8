"""Encoding and shrinking of pictures with Pillow."""

import io

from PIL import Image


def encode(image: Image.Image, kind: str = "PNG", **options: int | bool) -> bytes:
    """Return the bytes of an image file; options are Pillow's for this format, e.g. ``quality=75`` for WEBP."""
    content = io.BytesIO()
    image.save(content, kind, **options)
    return content.getvalue()


def shrink(image: Image.Image, longest: int, by: Image.Resampling) -> Image.Image:
    """Return the image with its longer side at most ``longest`` pixels and the aspect ratio kept."""
    scale = longest / max(image.size)
    if scale >= 1:
        return image
    return image.resize((max(1, round(image.width * scale)), max(1, round(image.height * scale))), by)
