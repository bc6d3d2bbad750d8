"""Whether photos with more than 8 bits keep their contrast when they are read with 8 bits."""

from typing import Literal

import numpy as np
import numpy.typing as npt

from dmt.data.folders import photo_files
from dmt.data.folders.contents import Source

Values = Literal["usual", "infinite", "faint", "stretched"]
"""How the values of a photo are: as expected; not all finite, so that `read_photo` maps most to 0; within so small a
part of 16 bits that it is read as dark; or outside of all usual ranges, so that it is stretched by its own extremes."""

FAINT = 1 << 14
"""16-bit photos whose values are all below this are faint: cameras and scanners store 10, 12 or 14 bits that way."""


def values(path: Source) -> Values:
    """Examine the values of a photo. One of 8 bits is not decoded."""
    with photo_files.opened(path) as image:
        deep = ";16" in photo_files.stored(image)
        if image.mode in ("I", "F") or image.mode.startswith("I;16"):
            return _of(np.asarray(image))
        # Pillow keeps only the upper half of 16-bit colors
        return _of(np.asarray(image.convert("RGB")).astype(np.uint16) << 8) if deep else "usual"


def _of(found: npt.NDArray[np.generic]) -> Values:
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        return "infinite"
    if photo_files.is_stretched(found):
        return "stretched"
    return "faint" if found.dtype.kind != "f" and 0 < found.max(initial=0) < FAINT else "usual"
