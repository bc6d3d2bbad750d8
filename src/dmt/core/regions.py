"""Connected regions of masks, and random parts of the boxes around them: tensor code without host synchronization."""

import torch
import torch.nn.functional as F
from torch import Tensor

from dmt.core import noise


def connected(mask: Tensor) -> Tensor:
    """Regions of a mask (N, h, w), by number, int64: 0 outside of the mask; neighbors at corners are connected, too.

    A number travels h + w steps. So a region that winds further than that may be told as two.
    """
    height, width = mask.shape[1:]
    places = torch.arange(1, height * width + 1, device=mask.device, dtype=torch.float32).view(1, height, width)
    numbers = places * mask
    for _ in range(height + width):
        numbers = F.max_pool2d(numbers[:, None], 3, 1, 1)[:, 0] * mask
    return numbers.long()


def box_parts(regions: Tensor, share: float, seeds: Tensor) -> Tensor:
    """A random part of the box around each region, (N, h, w) bool: ``share`` of its height and width, rounded down.

    Args:
        regions: (N, h, w) numbers, 0 for none.
        seeds: (N,) int64, of where in its box a part lies.
    """
    height, width = regions.shape[1:]
    rows = torch.arange(height, device=regions.device).view(1, -1, 1).expand(regions.shape)
    columns = torch.arange(width, device=regions.device).view(1, 1, -1).expand(regions.shape)
    chance = noise.uniform(seeds, 2 * (height * width + 1)).view(len(regions), 2, -1)
    top, tall = _part(regions, rows, share, chance[:, 0])
    left, wide = _part(regions, columns, share, chance[:, 1])
    return _covered(top, left, tall, wide, (height, width))


def _part(regions: Tensor, places: Tensor, share: float, chance: Tensor) -> tuple[Tensor, Tensor]:
    """Where the part of each number's box begins along one side, and how long it is, (N, numbers) each."""
    numbers, flat, most = regions.flatten(1), places.flatten(1), regions[0].numel()
    first = torch.full_like(chance, most, dtype=torch.int64).scatter_reduce(1, numbers, flat, "amin")
    last = torch.full_like(chance, -1, dtype=torch.int64).scatter_reduce(1, numbers, flat, "amax")
    first[:, 0], last[:, 0] = most, -1  # what belongs to no region
    long = (last - first + 1).clamp_min(0)
    taken = (long * share).long()
    shift = torch.minimum((chance * (long - taken + 1)).long(), long - taken)  # a product may be rounded up
    return first.clamp_max(most - 1) + shift, taken


def _covered(top: Tensor, left: Tensor, tall: Tensor, wide: Tensor, size: tuple[int, int]) -> Tensor:
    """Whether a place lies in any of these boxes (N, numbers), (N, h, w); those without an area cover nothing.

    Corners are counted: +1 where a box begins and −1 behind it, so that sums along both sides count the boxes.
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
