"""Images unlike all known ones, told by their features."""

import torch
import torch.nn.functional as F
from torch import Tensor

KNOWN = 0.95
"""Share of the known images that have a neighbor as near as an image must have to be like them."""

ROWS = 4096
"""Images that are compared at once."""


def unlike(known: Tensor, others: Tensor) -> Tensor:
    """Which of some images are farther from every known one than known ones are from each other, (M,) bool.

    Of images of the same kind that is about one in twenty: the distance, an angle, is one that this share of the known
    images has from the nearest other one.

    Args:
        known: features (N, F) of two images or more.
        others: features (M, F).
    """
    if len(known) < 2:
        raise ValueError("images can be unlike each other only if there are two")
    points = F.normalize(known.float(), dim=1)
    among = points @ points.T
    among.fill_diagonal_(-1.0)
    nearest = torch.quantile(among.amax(1), 1 - KNOWN)
    found = [(F.normalize(part.float(), dim=1) @ points.T).amax(1) < nearest for part in torch.split(others, ROWS)]
    return torch.cat(found) if found else torch.zeros(0, dtype=torch.bool)
