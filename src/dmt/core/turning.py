"""Images turned by quarters of a circle."""

import torch
from torch import Tensor

QUARTERS = 4


def turned(images: Tensor, quarters: Tensor) -> Tensor:
    """Each image turned by its own number of quarters; of one that is no square, the largest square in its middle.

    Args:
        images: (N, C, H, W).
        quarters: (N,) int64, from 0 to 3.
    """
    height, width = images.shape[-2:]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    square = images[..., top : top + side, left : left + side]
    every = torch.stack([square.rot90(number, (2, 3)) for number in range(QUARTERS)])  # (4, N, C, side, side)
    chosen = every[quarters, torch.arange(len(images), device=images.device)]
    if height == width:
        return chosen
    whole = images.clone()
    whole[..., top : top + side, left : left + side] = chosen
    return whole
