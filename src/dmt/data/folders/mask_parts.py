"""The resolution that photos need so that nets can still find the thin parts shown in masks."""

from collections.abc import Iterable

import numpy as np

from dmt.data.folders import mask_files, samples
from dmt.data.folders.contents import FolderContents
from dmt.data.pixels.masks import VOID, Plane
from dmt.errors import DataError

CELLS = 8
"""Width in pixels that nets need to find a part: two cells of their finest feature map."""

LOOKED_AT = 100
"""Greatest number of masks that are read."""

MOST_IMAGES = 0.8
"""Share of the images of each class whose parts should be that wide."""


def needed_side(contents: FolderContents) -> int:
    """Return the longer side that photos need, so that parts of every class stay `CELLS` pixels wide in most images.

    A photo whose parts are thinner than that at full size needs its full size. Without any mask the result is 0.
    """
    masks = [photo.mask for photo in contents.labeled if photo.mask is not None]
    planes = []
    for path in samples.evenly(masks, LOOKED_AT):
        try:
            planes.append(mask_files.read_mask(path, contents.colors, len(contents.classes)))
        except DataError:
            continue  # reported when all files are read
    needed = [np.quantile(sides, MOST_IMAGES) for sides in _needed(planes).values()]
    return int(max(needed, default=0))


def _needed(planes: Iterable[Plane]) -> dict[int, list[float]]:
    """Return the longer side that each image needs, by class."""
    found: dict[int, list[float]] = {}
    for plane in planes:
        across = widths(plane)
        for label in np.unique(plane[plane != VOID]).tolist():
            # the median over pixels, in which specks count little
            width = float(np.median(across[plane == label]))
            found.setdefault(label, []).append(max(plane.shape) * min(1.0, CELLS / width))
    return found


def widths(plane: Plane) -> np.ndarray:
    """Return, for every pixel, the length of the run of its class along its row or column, whichever is shorter."""
    across: np.ndarray = np.minimum(_runs(plane), _runs(plane.T).T)
    return across


def _runs(plane: np.ndarray) -> np.ndarray:
    """Return the length of the run of equal values that each pixel lies in, along its row."""
    ends = np.ones(plane.shape, bool)  # whether a pixel is the last of its run
    ends[:, :-1] = plane[:, 1:] != plane[:, :-1]
    lengths = np.diff(np.flatnonzero(ends), prepend=-1)
    return np.repeat(lengths, lengths).reshape(plane.shape)
