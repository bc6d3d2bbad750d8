"""Decide whether two similar pictures are the same photo, by aligning and comparing small copies of them.

Hashes alone cannot decide that (see ``likeness``): different photos of one scene share a hash, since most of it
describes the background.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image

from dmt.data.folders import likeness

LIMIT = 0.35
"""Greatest ``difference`` between copies of one photo; measured in decision 37."""

NEAREST = 8
"""Number of other pictures in its group that a picture is compared with: those that correlate most with it."""

PIECE = 2048
"""Groups larger than this are split, so that the time does not grow with the square of their size."""

_SIDE = 64
_MARGIN = 4  # pixels at each side that are not compared, as they may be missing in a cropped copy
_BLOCKS = 8
_STEPS = 3  # Gauss-Newton steps of the alignment
_FARTHEST = 3.0  # greatest displacement in pixels: beyond that it is no copy, or shows another part of the scene
_RELATED = 0.8  # least correlation for pictures to be aligned; cropped copies have 0.87 and more

Thumbnail = npt.NDArray[np.uint8]
Plane = npt.NDArray[np.float64]

_INSIDE = (slice(_MARGIN, -_MARGIN),) * 2
_ROWS, _COLUMNS = np.mgrid[:_SIDE, :_SIDE].astype(np.float64)
_DOWN, _RIGHT = ((each + 0.5) * 2 / _SIDE - 1 for each in (_ROWS, _COLUMNS))  # from the center, ±1 at the sides


def thumbnail(image: npt.NDArray[np.uint8]) -> Thumbnail:
    """Return a gray thumbnail (64, 64) of an image (H, W, 3)."""
    small = Image.fromarray(image).resize((_SIDE, _SIDE), Image.Resampling.BILINEAR)  # Pillow averages when shrinking
    return np.asarray(small.convert("L"))


def difference(first: Thumbnail, second: Thumbnail) -> float:
    """Compute how much two pictures differ in their worst block, in standard deviations of their brightness.

    Brightness and contrast are equalized. The second picture is shifted and scaled to match the first, as far as a
    crop can have displaced it. Then the inner parts are compared in 8 × 8 blocks by their mean absolute difference.
    """
    still, moving = _standardized(first[_INSIDE].astype(np.float64)), second.astype(np.float64)
    place = np.zeros(4)  # shift down and right, and scaling in both directions, in pixels
    least = np.inf
    for step in range(_STEPS + 1):
        moved = _sampled(moving, _ROWS + place[0] + place[2] * _DOWN, _COLUMNS + place[1] + place[3] * _RIGHT)
        error = still - _standardized(moved[_INSIDE])
        least = min(least, _worst(error))
        if least <= LIMIT or step == _STEPS:
            break
        place = np.clip(place + _step(moved, error), -_FARTHEST, _FARTHEST)
    return float(least)


def pairs(thumbnails: Sequence[Thumbnail], hashes: Sequence[int]) -> list[tuple[int, int]]:
    """Return positions (i, j), i < j, of copies within a group of pictures from ``candidates``."""
    order = sorted(range(len(hashes)), key=lambda position: hashes[position])
    found = set()
    for start in range(0, len(order), PIECE):
        piece = order[start : start + PIECE]
        for left, right in _related([thumbnails[position] for position in piece]):
            pair = min(piece[left], piece[right]), max(piece[left], piece[right])
            if pair not in found and difference(*(thumbnails[position] for position in pair)) <= LIMIT:
                found.add(pair)
    return sorted(found)


def candidates(hashes: Sequence[int]) -> list[list[int]]:
    """Group the positions of pictures whose hashes are close, directly or through others: only these are compared."""
    return likeness.groups(likeness.near_pairs(hashes))


def _related(thumbnails: Sequence[Thumbnail]) -> Iterator[tuple[int, int]]:
    """Yield every picture with those that correlate most with it, as pairs of positions."""
    rows = np.stack([_standardized(each.astype(np.float64)).astype(np.float32).ravel() for each in thumbnails])
    correlation = rows @ rows.T / rows.shape[1]
    np.fill_diagonal(correlation, -1)
    nearest = np.argsort(-correlation, axis=1, kind="stable")[:, :NEAREST]
    tried = set()
    for left, others in enumerate(nearest.tolist()):
        for right in others:
            pair = min(left, right), max(left, right)
            if pair not in tried and correlation[left, right] >= _RELATED:
                tried.add(pair)
                yield pair


def _standardized(plane: Plane) -> Plane:
    """Normalize to mean 0 and standard deviation 1."""
    centered: Plane = plane - plane.mean()
    return centered / max(float(centered.std()), 1e-9)


def _worst(error: Plane) -> float:
    side = error.shape[0] // _BLOCKS
    return float(np.abs(error).reshape(_BLOCKS, side, _BLOCKS, side).mean(axis=(1, 3)).max())


def _step(moved: Plane, error: Plane) -> npt.NDArray[np.float64]:
    """Compute the Gauss-Newton step: the displacement that, to first order, explains the error best."""
    down, right = (np.gradient(moved, axis=axis)[_INSIDE] / max(float(moved[_INSIDE].std()), 1e-9) for axis in (0, 1))
    columns = (down, right, down * _DOWN[_INSIDE], right * _RIGHT[_INSIDE])
    slopes = np.stack([each.ravel() for each in columns], axis=1)
    return np.linalg.solve(slopes.T @ slopes + 1e-3 * np.eye(4), slopes.T @ error.ravel())


def _sampled(plane: Plane, rows: Plane, columns: Plane) -> Plane:
    """Interpolate the plane bilinearly at fractional rows and columns."""
    rows, columns = (np.clip(each, 0, _SIDE - 1.001) for each in (rows, columns))
    top, left = rows.astype(np.intp), columns.astype(np.intp)
    below, beside = rows - top, columns - left
    upper = plane[top, left] * (1 - beside) + plane[top, left + 1] * beside
    lower = plane[top + 1, left] * (1 - beside) + plane[top + 1, left + 1] * beside
    mixed: Plane = upper * (1 - below) + lower * below
    return mixed
