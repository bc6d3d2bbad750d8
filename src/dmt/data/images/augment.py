"""Augmentation policies by name: (N, C, H, W) uint8 in, the same out, with luck of its own for every image.

A policy draws first and applies then: the draws are a tree of tensors, and applying them is the same tensor code in
every step, without randomness. Labeled and pseudo-labeled images go through the same policy.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from dmt.data.images import geometry, randaugment
from dmt.data.images.geometry import CropFlip


class Augment(Protocol):
    """What a policy is."""

    def draw(self, count: int, generator: torch.Generator, device: torch.device) -> Any:
        """The luck of ``count`` images: a tree of tensors."""

    def apply(self, images: Tensor, draws: Any) -> Tensor:
        """The images, changed by their luck."""


@dataclass(frozen=True)
class Nothing:
    """Images as they are."""

    def draw(self, count: int, generator: torch.Generator, device: torch.device) -> None:
        return None

    def apply(self, images: Tensor, draws: None) -> Tensor:
        return images


@dataclass(frozen=True)
class Crop:
    """A random crop of the padded image, then maybe a horizontal flip."""

    padding: int
    fill: int
    flip: bool

    def draw(self, count: int, generator: torch.Generator, device: torch.device) -> CropFlip:
        return geometry.draw_crop_flip(count, self.padding, self.flip, generator, device)

    def apply(self, images: Tensor, draws: CropFlip) -> Tensor:
        return geometry.crop_flip(images, draws, self.fill)


@dataclass(frozen=True)
class Strong:
    """The augmentation of the paper (docs/decisions, 10): crop, flip, then one random operation of random magnitude."""

    crop: Crop
    policy: randaugment.Policy

    def draw(self, count: int, generator: torch.Generator, device: torch.device) -> tuple[CropFlip, randaugment.Draws]:
        return self.crop.draw(count, generator, device), randaugment.draw(count, generator, device)

    def apply(self, images: Tensor, draws: tuple[CropFlip, randaugment.Draws]) -> Tensor:
        return randaugment.apply(self.crop.apply(images, draws[0]), draws[1], self.policy)


_CIFAR = Crop(padding=4, fill=128, flip=True)

POLICIES: dict[str, Augment] = {
    "none": Nothing(),
    "shift": Crop(padding=1, fill=0, flip=False),
    "crop-flip": _CIFAR,
    "paper": Strong(_CIFAR, randaugment.POLICIES["paper"]),
    "sane": Strong(_CIFAR, randaugment.POLICIES["sane"]),
}
