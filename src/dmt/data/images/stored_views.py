"""Views of an image that a frozen encoder processes once: the image, its mirror image, then random crops.

The crops depend only on the image's id and the number of the view, not on the batch or the run.
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from dmt.core import streams
from dmt.data.images.batches import scale

PLAIN, MIRRORED = 0, 1
"""Numbers of the first two views."""

AREA = (0.5, 1.0)
"""Least and greatest area of a crop, as a share of the image."""

ASPECT = 4 / 3
"""Greatest factor by which the aspect ratio of a crop may differ from the image's."""


def make(images: Tensor, ids: Sequence[str], view: int) -> Tensor:
    """Return view number ``view`` of images (N, C, H, W) uint8, as float32 in [0, 1] of the same size."""
    if view == PLAIN:
        return scale(images)
    if view == MIRRORED:
        return scale(images.flip(-1))
    return torch.cat([_crop(image, each, view) for image, each in zip(images, ids, strict=True)])


def _crop(image: Tensor, identity: str, view: int) -> Tensor:
    """Return a random crop of an image (C, H, W), resized to its full size and mirrored with probability 0.5."""
    rng = streams.stream("stored view", identity, view)
    height, width = image.shape[1:]
    area, aspect = rng.uniform(*AREA), ASPECT ** rng.uniform(-1.0, 1.0)
    tall = min(height, max(1, round(height * math.sqrt(area / aspect))))
    wide = min(width, max(1, round(width * math.sqrt(area * aspect))))
    top, left = (int(rng.integers(0, room + 1)) for room in (height - tall, width - wide))
    part = scale(image[None, :, top : top + tall, left : left + wide])
    whole = F.interpolate(part, size=(height, width), mode="bilinear", antialias=True)
    return whole.flip(-1) if rng.random() < 0.5 else whole
