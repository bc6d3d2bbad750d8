"""Images of a set as numpy pictures, thumbnails and padding masks, whether stacked or ragged."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dmt.data.ragged import Ragged
from dmt.data.sets import LabeledSet, UnlabeledSet

Images = UnlabeledSet[Any] | LabeledSet[Any]


def picture(images: Images, position: int) -> np.ndarray:
    """Return one image of a set, (H, W, 3) uint8, or (H, W) if it is gray."""
    held = images.images
    if isinstance(held, Ragged):
        plane: np.ndarray = held.image(position).numpy()
        return plane
    planes: np.ndarray = held[position].numpy()  # (C, H, W)
    return planes[0] if len(planes) == 1 else planes.transpose(1, 2, 0)


def thumbnails(images: Images, side: int = 16) -> Tensor:
    """Return small copies of all images, (N, C · side²) in [0, 1], by which duplicates can be recognized."""

    def small(planes: Tensor) -> Tensor:  # (n, C, H, W)
        size = (side, side)
        return nn.functional.interpolate(planes.float() / 255.0, size, mode="area").flatten(1)

    held = images.images
    if isinstance(held, Ragged):
        each = [small(held.image(position).permute(2, 0, 1)[None]) for position in range(len(images))]
        return torch.cat(each) if each else torch.zeros(0, 1)
    return torch.cat([small(part) for part in held.split(1000)]) if len(images) else torch.zeros(0, 1)


def inside(images: Images, positions: Tensor, like: Tensor) -> Tensor:
    """Return which sites of a padded batch belong to the images rather than to padding.

    Args:
        positions: (n,) positions of the batch's images in the set.
        like: any tensor of the batch, for its device and its padded height and width.

    Returns:
        (n, *S) bool, on the device of ``like``.
    """
    held = images.images
    if not isinstance(held, Ragged):
        return torch.ones(len(positions), dtype=torch.bool, device=like.device)
    height, width = like.shape[-2:]
    heights, widths = (each[positions].to(like.device) for each in (held.heights, held.widths))
    rows, columns = (torch.arange(size, device=like.device) for size in (height, width))
    return (rows < heights[:, None])[:, :, None] & (columns < widths[:, None])[:, None, :]
