"""Inference batches of images of different sizes, grouped by padded size."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dmt.core import trees
from dmt.data.images import batches
from dmt.data.ragged import Ragged
from dmt.types import IGNORE, PADDING

NO_LABEL = 255
"""The value of ``IGNORE`` in uint8 planes and in the files they come from."""


@dataclass(frozen=True)
class Group:
    """The images of a batch, and the size that all of them are padded to."""

    positions: list[int]
    height: int
    width: int


def groups(sizes: Sequence[tuple[int, int]], multiple: int = PADDING, pixels: int = 4_000_000) -> list[Group]:
    """Split images into batches of equal padded size; every position is in exactly one batch.

    Args:
        sizes: (height, width) of every image.
        multiple: sides are padded to the next multiple of this.
        pixels: greatest number of pixels in a batch, padding included. A larger image is a batch by itself.
    """
    alike: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for position, (height, width) in enumerate(sizes):
        alike[padded(height, multiple), padded(width, multiple)].append(position)
    found = []
    # the largest first, so that running out of memory happens at once
    for height, width in sorted(alike, key=lambda size: (-size[0] * size[1], size)):
        members = alike[height, width]
        most = max(1, pixels // (height * width))
        found += [Group(members[at : at + most], height, width) for at in range(0, len(members), most)]
    return found


def padded(length: int, multiple: int = PADDING) -> int:
    """Round a length up to the next multiple."""
    return -(-length // multiple) * multiple


def gather(ragged: Ragged, group: Group, device: torch.device, fill: int = 0) -> Tensor:
    """Return the color images of a group, (n, C, H, W) float32 in [0, 1], in channels_last memory format.

    They are copied to the device as uint8. Padding at the bottom and right has the value ``fill`` / 255.
    """
    return batches.scale(_padded_planes(ragged, group, device, fill).permute(0, 3, 1, 2))


def gather_plane(ragged: Ragged, group: Group, device: torch.device, fill: int = NO_LABEL) -> Tensor:
    """Return the planes of a group, e.g. masks, (n, H, W) of the planes' dtype, padded with ``fill``."""
    return _padded_planes(ragged, group, device, fill)


def _padded_planes(ragged: Ragged, group: Group, device: torch.device, fill: int) -> Tensor:
    here = ragged.pixels.device
    shape = (len(group.positions), group.height, group.width, *ragged.pixels.shape[1:])
    pinned = device.type == "cuda" and here.type == "cpu"  # so that the copy can overlap with computation
    room = torch.full(shape, fill, dtype=ragged.pixels.dtype, device=here, pin_memory=pinned)
    for place, position in zip(room, group.positions, strict=True):
        image = ragged.image(position)
        place[: image.shape[0], : image.shape[1]] = image
    return room.to(device, non_blocking=pinned)


def padding(sizes: Tensor, planes: Tensor) -> Tensor:
    """Return where planes (n, H, W) of images with these sizes (n, 2) are padding, as bool (n, H, W)."""
    sizes = trees.send(sizes.numpy(), planes.device)
    rows, columns = (torch.arange(length, device=planes.device) for length in planes.shape[1:])
    below = rows[:, None] >= sizes[:, :1, None]  # (n, H, 1)
    return below | (columns >= sizes[:, 1:, None])


def truth(plane: Tensor) -> Tensor:
    """Convert a uint8 plane of labels to int64, with ``IGNORE`` in place of ``NO_LABEL``."""
    return plane.long().masked_fill_(plane == NO_LABEL, IGNORE)
