"""Connected regions of masks, and random parts of their bounding boxes, as tensor code without host synchronization."""

import torch
import torch.nn.functional as F
from torch import Tensor

from dmt.core import noise


def connected(mask: Tensor) -> Tensor:
    """Label the 8-connected regions of masks (N, h, w): return region numbers, int64, 0 outside of the mask.

    Numbers propagate for h + w steps, so a region that winds farther than that may be split into several.
    """
    height, width = mask.shape[1:]
    places = torch.arange(1, height * width + 1, device=mask.device, dtype=torch.float32).view(1, height, width)
    numbers = places * mask
    for _ in range(height + width):
        numbers = F.max_pool2d(numbers[:, None], 3, 1, 1)[:, 0] * mask
    return numbers.long()


def box_parts(regions: Tensor, share: float, seeds: Tensor) -> Tensor:
    """Return a random box inside the bounding box of each region, all of an image in one mask, (N, h, w) bool.

    Args:
        regions: (N, h, w) region numbers, 0 for none.
        share: height and width of a box as a share of those of the bounding box, rounded down to whole pixels.
        seeds: (N,) int64 seeds of the positions of the boxes.
    """
    height, width = regions.shape[1:]
    rows = torch.arange(height, device=regions.device).view(1, -1, 1).expand(regions.shape)
    columns = torch.arange(width, device=regions.device).view(1, 1, -1).expand(regions.shape)
    chance = noise.uniform(seeds, 2 * (height * width + 1)).view(len(regions), 2, -1)
    top, tall = _part(regions, rows, share, chance[:, 0])
    left, wide = _part(regions, columns, share, chance[:, 1])
    return _covered(top, left, tall, wide, (height, width))


def _part(regions: Tensor, places: Tensor, share: float, chance: Tensor) -> tuple[Tensor, Tensor]:
    """Return where each region's box begins along one dimension, and its length there, (N, numbers) each."""
    numbers, flat, most = regions.flatten(1), places.flatten(1), regions[0].numel()
    first = torch.full_like(chance, most, dtype=torch.int64).scatter_reduce(1, numbers, flat, "amin")
    last = torch.full_like(chance, -1, dtype=torch.int64).scatter_reduce(1, numbers, flat, "amax")
    first[:, 0], last[:, 0] = most, -1  # number 0 is no region
    long = (last - first + 1).clamp_min(0)
    taken = (long * share).long()
    shift = torch.minimum((chance * (long - taken + 1)).long(), long - taken)  # the product may round up
    return first.clamp_max(most - 1) + shift, taken


def _covered(top: Tensor, left: Tensor, tall: Tensor, wide: Tensor, size: tuple[int, int]) -> Tensor:
    """Return which positions lie in any of the boxes (N, numbers), as (N, h, w) bool; empty boxes cover nothing.

    Each box adds +1 and −1 at its corners; cumulative sums along both dimensions then count the boxes at each position.
    """
    height, width = size
    counts = torch.zeros(len(top), (height + 1) * (width + 1), dtype=torch.int64, device=top.device)
    there = ((tall > 0) & (wide > 0)).long()
    for row, column, sign in (
        (top, left, 1),
        (top + tall, left, -1),
        (top, left + wide, -1),
        (top + tall, left + wide, 1),
    ):
        counts = counts.scatter_add(1, (row * (width + 1) + column) * there, sign * there)
    counts = counts.view(len(top), height + 1, width + 1).cumsum(1).cumsum(2)
    return counts[:, :height, :width] > 0
