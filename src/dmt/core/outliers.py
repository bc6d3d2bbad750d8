"""Detect images that are unlike all known ones, by their features."""

import torch
import torch.nn.functional as F
from torch import Tensor

KNOWN = 0.95
"""Share of known images whose nearest other known image is close enough not to be called unlike."""

ROWS = 4096
"""Number of images that are compared with the known ones at once."""


def unlike(known: Tensor, others: Tensor) -> Tensor:
    """Return which images are farther from every known image than known images are from each other, (M,) bool.

    The limit is the cosine similarity that 95 % of the known images (`KNOWN`) reach with their nearest other known
    image. So of images of the same kind, about one in twenty is called unlike.

    Args:
        known: features (N, F) of at least two known images.
        others: features (M, F) of the images to test.
    """
    if len(known) < 2:
        raise ValueError("images can be unlike each other only if there are two")
    points = F.normalize(known.float(), dim=1)
    limit = torch.quantile(
        torch.cat([_nearest_other(points, start) for start in range(0, len(points), ROWS)]), 1 - KNOWN
    )
    found = [(F.normalize(part.float(), dim=1) @ points.T).amax(1) < limit for part in torch.split(others, ROWS)]
    return torch.cat(found) if found else torch.zeros(0, dtype=torch.bool)


def _nearest_other(points: Tensor, start: int) -> Tensor:
    """Return the cosine of each of `ROWS` unit vectors, from position ``start`` on, with the nearest other one."""
    cosines = points[start : start + ROWS] @ points.T
    rows = torch.arange(len(cosines))
    cosines[rows, start + rows] = -1.0  # each is nearest to itself
    return cosines.amax(1)
