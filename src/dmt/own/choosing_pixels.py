"""Image size and crop for a folder of images with masks."""

import statistics
from dataclasses import dataclass

from dmt.data.folders import mask_parts, photo_files, photo_sets
from dmt.data.folders.contents import FolderContents
from dmt.errors import DataError


@dataclass(frozen=True)
class Limits:
    """Limits on image sizes in pixels, for one kind of net on one device.

    Attributes:
        usual: longer side of photos with which a run takes minutes.
        most: longer side of photos at most, used if masks have thin parts.
        crop: side of the training crops at most.
    """

    usual: int
    most: int
    crop: int


GPU = Limits(usual=512, most=1024, crop=256)
CPU = Limits(usual=192, most=640, crop=128)
"""Limits on a CPU for a decoder on a frozen published encoder."""

CPU_SMALL = Limits(usual=128, most=256, crop=64)
"""Limits on a CPU for nets whose every layer is trained."""


@dataclass(frozen=True)
class Seen:
    """Longer side of photos, training crop (height, width), and the reason for the size."""

    size: int
    crop: tuple[int, int]
    why: str


def seen(contents: FolderContents, limits: Limits) -> Seen:
    """Choose the usual, fast image size, or a larger one within the limits if thin parts of the masks need it."""
    needed = mask_parts.needed_side(contents)
    size = min(limits.most, max(limits.usual, -(-needed // 16) * 16))
    sides = []
    for photo in contents.labeled:
        try:
            sides.append(photo_files.photo_size(photo.path))
        except DataError:
            continue  # reported when all images are read
    shrunk = [photo_sets.limited(each, size) for each in sides]
    crop = tuple(_crop(statistics.median(each), limits.crop) for each in zip(*shrunk, strict=True))
    height, width = crop or (limits.crop, limits.crop)
    return Seen(size, (height, width), _why(limits, needed, size, max(map(max, sides), default=0)))


def _crop(side: float, most: int) -> int:
    """Round a photo's side to the nearest multiple of 32, for which encoders need no padding, within [32, most]."""
    return max(32, min(most, round(side / 32) * 32))


def _why(limits: Limits, needed: int, size: int, longest: int) -> str:
    if longest <= size:
        return f"your photos at full size, at most {longest} pixels on the longer side"
    if needed > limits.most:
        return f"thin parts of your masks would need {needed}; limited for speed"
    if needed > limits.usual:
        return "photos are not downscaled further, since thin parts of your masks need this resolution"
    return f"photos are downscaled for speed; the thinnest parts of your masks would allow {needed}"
