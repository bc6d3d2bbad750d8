"""Augmentation policies by name: (N, C, H, W) uint8 in, the same out, drawn per image on the device.

Labeled and pseudo-labeled images go through the same policy.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from dmt.data import geometry, randaugment

Augment = Callable[[Tensor, torch.Generator], Tensor]


def nothing(images: Tensor, generator: torch.Generator) -> Tensor:
    """Images as they are."""
    return images


def crop(images: Tensor, generator: torch.Generator, *, padding: int, fill: int, flip: bool) -> Tensor:
    """A random crop of the padded image, then maybe a horizontal flip."""
    draws = geometry.draw_crop_flip(len(images), padding, flip, generator, images.device)
    return geometry.crop_flip(images, draws, fill)


def strong(images: Tensor, generator: torch.Generator, *, policy: str) -> Tensor:
    """Protocol §1.3: crop, flip, then one random operation of random magnitude."""
    images = crop(images, generator, padding=4, fill=128, flip=True)
    draws = randaugment.draw(len(images), generator, images.device)
    return randaugment.apply(images, draws, randaugment.POLICIES[policy])


POLICIES: dict[str, Augment] = {
    "none": nothing,
    "shift": partial(crop, padding=1, fill=0, flip=False),
    "crop-flip": partial(crop, padding=4, fill=128, flip=True),
    "paper": partial(strong, policy="paper"),
    "sane": partial(strong, policy="sane"),
}

SUMMARIES: dict[str, str] = {
    "none": "images as they are",
    "shift": "random shift by up to 1 pixel, for tiny gray images",
    "crop-flip": "random crop after padding by 4, horizontal flip",
    "paper": "crop-flip and one of 16 operations, as published (translation in absolute pixels)",
    "sane": "as paper, but translation and cutout relative to the image",
}
