"""Rotation of images by multiples of 90 degrees."""

import torch
from torch import Tensor

QUARTERS = 4


def turned(images: Tensor, quarters: Tensor) -> Tensor:
    """Rotate each image counterclockwise by its own number of quarter turns.

    In images that are not square, only the largest central square is rotated; the rest stays as it is.

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
