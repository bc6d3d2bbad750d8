"""How thin the parts are that masks show, and how many pixels they need of a photo."""

from collections.abc import Iterable

import numpy as np

from dmt.data.folders import photo_files, samples
from dmt.data.folders.contents import FolderContents
from dmt.data.pixels.masks import VOID, Plane
from dmt.errors import DataError

CELLS = 8
"""Pixels across a part that nets need to find it: two cells of their finest features."""

LOOKED_AT = 100
"""Masks that are read at most."""

MOST_IMAGES = 0.8
"""Share of the images of a class whose parts are to have that many pixels."""


def needed_side(contents: FolderContents) -> int:
    """The longer side that photos need, so that parts of every class stay `CELLS` pixels wide in most images.

    A photo whose parts are thinner than that needs all of its pixels.
    """
    masks = [photo.mask for photo in contents.labeled if photo.mask is not None]
    planes = []
    for path in samples.evenly(masks, LOOKED_AT):
        try:
            planes.append(photo_files.read_mask(path, contents.colors, len(contents.classes)))
        except DataError:
            continue  # reported when everything is read
    needed = [np.quantile(sides, MOST_IMAGES) for sides in _needed(planes).values()]
    return int(max(needed, default=0))


def _needed(planes: Iterable[Plane]) -> dict[int, list[float]]:
    """The longer side that each image needs, by class."""
    found: dict[int, list[float]] = {}
    for plane in planes:
        across = widths(plane)
        for label in np.unique(plane[plane != VOID]).tolist():
            # the median pixel: specks have few
            width = float(np.median(across[plane == label]))
            found.setdefault(label, []).append(max(plane.shape) * min(1.0, CELLS / width))
    return found


def widths(plane: Plane) -> np.ndarray:
    """Of every pixel, the length of its class's run through it: along the row or the column, whichever is shorter."""
    across: np.ndarray = np.minimum(_runs(plane), _runs(plane.T).T)
    return across


def _runs(plane: np.ndarray) -> np.ndarray:
    """The length of the run that each pixel lies in, row by row."""
    ends = np.ones(plane.shape, bool)  # whether a pixel is the last of its run
    ends[:, :-1] = plane[:, 1:] != plane[:, :-1]
    lengths = np.diff(np.flatnonzero(ends), prepend=-1)
    return np.repeat(lengths, lengths).reshape(plane.shape)
