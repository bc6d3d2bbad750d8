"""Inference on images of many sizes: those of about one size go together, padded to a common size."""

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
"""How compact planes, like the files they come from, write ``IGNORE``."""


@dataclass(frozen=True)
class Group:
    """Images that share a batch, and the size that all of them are padded to."""

    positions: list[int]
    height: int
    width: int


def groups(sizes: Sequence[tuple[int, int]], multiple: int = PADDING, pixels: int = 4_000_000) -> list[Group]:
    """Split images into batches of equal padded size; every position is in exactly one.

    Args:
        sizes: (height, width) of every image.
        multiple: sides are padded to the next multiple of this.
        pixels: the most that a batch holds, padding included. A larger image is alone in its batch.
    """
    alike: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for position, (height, width) in enumerate(sizes):
        alike[padded(height, multiple), padded(width, multiple)].append(position)
    found = []
    # the largest first: if memory is too small, that shows at once
    for height, width in sorted(alike, key=lambda size: (-size[0] * size[1], size)):
        members = alike[height, width]
        most = max(1, pixels // (height * width))
        found += [Group(members[at : at + most], height, width) for at in range(0, len(members), most)]
    return found


def padded(length: int, multiple: int = PADDING) -> int:
    """The next multiple."""
    return -(-length // multiple) * multiple


def gather(ragged: Ragged, group: Group, device: torch.device, fill: int = 0) -> Tensor:
    """The color images of a group, ``fill`` of 255 at the bottom and right: (n, C, H, W) float32 in [0, 1].

    They cross to the device as uint8 and lie there as channels_last.
    """
    return batches.scale(_padded_planes(ragged, group, device, fill).permute(0, 3, 1, 2))


def gather_plane(ragged: Ragged, group: Group, device: torch.device, fill: int = NO_LABEL) -> Tensor:
    """The planes of a group, e.g. masks, with ``fill`` at the bottom and right: (n, H, W) of the planes' type."""
    return _padded_planes(ragged, group, device, fill)


def _padded_planes(ragged: Ragged, group: Group, device: torch.device, fill: int) -> Tensor:
    here = ragged.pixels.device
    shape = (len(group.positions), group.height, group.width, *ragged.pixels.shape[1:])
    pinned = device.type == "cuda" and here.type == "cpu"  # so that the copy can overlap with work
    room = torch.full(shape, fill, dtype=ragged.pixels.dtype, device=here, pin_memory=pinned)
    for place, position in zip(room, group.positions, strict=True):
        image = ragged.image(position)
        place[: image.shape[0], : image.shape[1]] = image
    return room.to(device, non_blocking=pinned)


def padding(sizes: Tensor, planes: Tensor) -> Tensor:
    """Where planes (n, H, W) of images with these sizes (n, 2) are padded: (n, H, W) bool on their device."""
    sizes = trees.send(sizes.numpy(), planes.device)
    rows, columns = (torch.arange(length, device=planes.device) for length in planes.shape[1:])
    below = rows[:, None] >= sizes[:, :1, None]  # (n, H, 1)
    return below | (columns >= sizes[:, 1:, None])


def truth(plane: Tensor) -> Tensor:
    """Labels of a compact uint8 plane as int64, with ``IGNORE`` where it has none."""
    return plane.long().masked_fill_(plane == NO_LABEL, IGNORE)
