"""Read a user's masks: class numbers or colors, in lossless image files of any kind."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from dmt.data.folders import photo_files
from dmt.data.folders.contents import Source
from dmt.data.folders.photo_files import Plane, shown
from dmt.data.pixels.masks import VOID
from dmt.data.pixels.palettes import Color
from dmt.errors import DataError

_LOSSLESS = frozenset({"PNG", "BMP", "TIFF", "GIF"})


@contextmanager
def opened_mask(path: Path) -> Iterator[Image.Image]:
    """Open a mask without decoding it; refuse formats with lossy compression."""
    with photo_files.opened(path) as image:
        if image.format not in _LOSSLESS:
            raise DataError(
                f"{shown(path)} is a {image.format} file, which blurs class numbers; "
                "export masks anew as PNG: this one stays blurred if saved as PNG"
            )
        yield image


def require_size(mask: Path, found: tuple[int, ...], photo: Source, size: tuple[int, int]) -> None:
    """Refuse a mask whose size (H, W) is not that of its photo as it is read."""
    if found == size:
        return
    remedy = "give every image a mask of its own size"
    if found == size[::-1] and photo_files.is_rotated(photo):
        remedy = (
            "the photo is rotated by its EXIF orientation, and masks must be drawn on the upright photo: "
            "rotate the mask likewise"
        )
    raise DataError(f"{shown(mask)} has {found[0]}×{found[1]} pixels but its image {size[0]}×{size[1]}; {remedy}")


def read_mask(path: Path, class_colors: Mapping[Color, int] | None, classes: int) -> Plane:
    """Read a mask as class numbers (H, W) uint8, 255 where a pixel has no label.

    Args:
        path: the file.
        class_colors: the class of each color; None if pixels hold class numbers. Indexed masks are read by the colors
            of their palette in the first case and by their stored values in the second.
        classes: number of classes; pixels may hold 0 … classes − 1 and 255.
    """
    with opened_mask(path) as image:
        plane = numbers(image) if class_colors is None else colors(image)
        pixels = np.asarray(photo_files.upright(plane, photo_files.orientation(image)))
    if class_colors is not None:
        return _by_color(path, pixels, class_colors)
    if pixels.ndim == 3:
        raise DataError(f"{shown(path)} is drawn in colors, not in class numbers; say in classes.txt: name r g b")
    wrong = pixels[(pixels < 0) | (pixels >= classes) & (pixels != VOID)]
    if wrong.size:
        raise DataError(
            f"{shown(path)} has the class {wrong[0]}, outside 0..{classes - 1} and 255 (no label); "
            "name all classes in classes.txt or fix the mask"
        )
    return pixels.astype(np.uint8)


def _by_color(path: Path, pixels: npt.NDArray[np.generic], class_colors: Mapping[Color, int]) -> Plane:
    """Map colors (H, W, 3) to classes (H, W)."""
    known = np.array(
        sorted((red << 16 | green << 8 | blue, label) for (red, green, blue), label in class_colors.items())
    )
    red_plane, green_plane, blue_plane = np.moveaxis(pixels.astype(np.int32), 2, 0)
    packed = red_plane << 16 | green_plane << 8 | blue_plane  # (H, W)
    places = np.searchsorted(known[:, 0], packed).clip(max=len(known) - 1)
    strange = packed[known[places, 0] != packed]
    if strange.size:
        raise DataError(
            f"{shown(path)} has the color #{strange[0]:06x}, which no class has ({strange.size:,} such pixels); "
            "add it to classes.txt, or save masks without smooth edges"
        )
    plane: Plane = known[places, 1].astype(np.uint8)
    return plane


def numbers(image: Image.Image) -> Image.Image:
    """Convert a mask so that its pixels are its stored numbers; a mask drawn in colors is returned as RGB."""
    if image.mode == "1":
        return Image.fromarray(np.asarray(image).astype(np.uint8))
    if image.mode in ("L", "P"):
        # Pillow scales 2- and 4-bit gray to 0..255, so that 1 becomes 85 or 17
        step = {"L;2": 85, "L;4": 17}.get(photo_files.stored(image), 1)
        return image.point(lambda value: value // step) if step > 1 else image
    if image.mode == "I" or image.mode.startswith("I;16"):
        return image
    if image.mode == "LA":
        return image.getchannel("L")
    rgb = image.convert("RGB")
    red, green, blue = rgb.split()
    # many tools save gray with three equal channels
    return red if red.tobytes() == green.tobytes() == blue.tobytes() else rgb


def colors(image: Image.Image) -> Image.Image:
    """Convert a mask to RGB: gray v becomes (v, v, v), and alpha is ignored."""
    if image.mode == "I" or image.mode.startswith("I;16"):
        values = np.asarray(image)
        if values.min(initial=0) < 0 or values.max(initial=0) > VOID:
            raise DataError(f"{shown(str(getattr(image, 'filename', 'a mask')))} has gray above 255; save it in 8 bits")
        image = Image.fromarray(values.astype(np.uint8))
    if image.mode == "P":  # convert by the palette alone: transparency would make Pillow warn
        image.info.pop("transparency", None)
    return (numbers(image) if image.mode == "L" else image).convert("RGB")
