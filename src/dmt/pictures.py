"""Pictures as bytes: one place that shrinks and encodes them."""

import io

from PIL import Image


def encode(image: Image.Image, kind: str = "PNG", **options: int | bool) -> bytes:
    """A file's content; the options are those of Pillow for this kind, e.g. ``quality=75`` for WEBP."""
    content = io.BytesIO()
    image.save(content, kind, **options)
    return content.getvalue()


def shrink(image: Image.Image, longest: int, by: Image.Resampling) -> Image.Image:
    """The image with its longer side at most this long, in the same proportions."""
    scale = longest / max(image.size)
    if scale >= 1:
        return image
    return image.resize((max(1, round(image.width * scale)), max(1, round(image.height * scale))), by)
