"""Net, image size and window for a folder whose pixels get labels."""

import statistics
from dataclasses import dataclass

from dmt.data.folders import mask_parts, photo_files, photo_sets
from dmt.data.folders.contents import FolderContents
from dmt.errors import DataError


@dataclass(frozen=True)
class Limits:
    """Of what nets of one kind see on one device.

    Attributes:
        usual: longer side of photos that a run takes in minutes.
        most: longer side if parts are thin.
        crop: a side of what a step sees.
    """

    usual: int
    most: int
    crop: int


GPU = Limits(usual=512, most=1024, crop=256)
CPU = Limits(usual=192, most=640, crop=128)
"""For a decoder on a published encoder that stays as it is."""

CPU_SMALL = Limits(usual=128, most=256, crop=64)
"""For nets all of which learn."""


@dataclass(frozen=True)
class Seen:
    """What nets see of the photos, and why."""

    size: int
    crop: tuple[int, int]
    why: str


def seen(contents: FolderContents, limits: Limits) -> Seen:
    """As small as is fast, but no smaller than thin parts of the given masks allow."""
    needed = mask_parts.needed_side(contents)
    size = min(limits.most, max(limits.usual, -(-needed // 16) * 16))
    sides = []
    for photo in contents.labeled:
        try:
            sides.append(photo_files.photo_size(photo.path))
        except DataError:
            continue  # reported when everything is read
    shrunk = [photo_sets.limited(each, size) for each in sides]
    crop = tuple(_crop(statistics.median(each), limits.crop) for each in zip(*shrunk, strict=True))
    height, width = crop or (limits.crop, limits.crop)
    return Seen(size, (height, width), _why(limits, needed, size, max(map(max, sides), default=0)))


def _crop(side: float, most: int) -> int:
    """A side of the window for photos of this side: the nearest multiple of 32, that encoders need no padding for."""
    return max(32, min(most, round(side / 32) * 32))


def _why(limits: Limits, needed: int, size: int, longest: int) -> str:
    if longest <= size:
        return f"your photos at full size, at most {longest} pixels on the longer side"
    if needed > limits.most:
        return f"thin parts of your masks would need {needed}; limited for speed"
    if needed > limits.usual:
        return "photos are not downscaled further, since thin parts of your masks need this resolution"
    return f"photos are downscaled for speed; the thinnest parts of your masks would allow {needed}"
