"""Augmentation policies by name: (N, C, H, W) uint8 in, the same out, with draws of its own for every image.

A policy draws first and applies then: the draws are a tree of tensors, and applying them is the same tensor code in
every step, without randomness. Every kind of view has its policy: Baseline and rounds see ``train``, online methods
see ``weak`` and ``strong`` ones.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor

from dmt.core.labeling_views import LabelingView
from dmt.data.images import geometry, randaugment
from dmt.data.images.geometry import CropFlip
from dmt.errors import ConfigError
from dmt.types import STRONG, TRAIN, WEAK


class Augment(Protocol):
    """What a policy is."""

    @property
    def mirrors(self) -> bool:
        """Whether some images come with left and right exchanged."""

    def draw(self, count: int, generator: torch.Generator, device: torch.device) -> Any:
        """What becomes of ``count`` images: a tree of tensors."""

    def apply(self, images: Tensor, draws: Any) -> Tensor:
        """The images, changed as drawn."""


@dataclass(frozen=True)
class Nothing:
    """Images as they are."""

    mirrors: ClassVar[bool] = False

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

    @property
    def mirrors(self) -> bool:
        return self.flip

    def draw(self, count: int, generator: torch.Generator, device: torch.device) -> CropFlip:
        return geometry.draw_crop_flip(count, self.padding, self.flip, generator, device)

    def apply(self, images: Tensor, draws: CropFlip) -> Tensor:
        return geometry.crop_flip(images, draws, self.fill)


@dataclass(frozen=True)
class Strong:
    """The augmentation of the paper (docs/decisions, 10): crop, flip, then a random operation of random magnitude.

    Attributes:
        operations: how many follow each other; the paper has one.
    """

    crop: Crop
    policy: randaugment.Policy
    operations: int = 1

    @property
    def mirrors(self) -> bool:
        return self.crop.mirrors

    def draw(
        self, count: int, generator: torch.Generator, device: torch.device
    ) -> tuple[CropFlip, tuple[randaugment.Draws, ...]]:
        crop = self.crop.draw(count, generator, device)
        return crop, tuple(randaugment.draw(count, generator, device) for _ in range(self.operations))

    def apply(self, images: Tensor, draws: tuple[CropFlip, tuple[randaugment.Draws, ...]]) -> Tensor:
        crop, every = draws
        images = self.crop.apply(images, crop)
        for each in every:
            images = randaugment.apply(images, each, self.policy)
        return images


class Look(NamedTuple):
    """Which part of a photo is seen, and in which light; light is (2, N), factors for brightness and contrast."""

    part: geometry.Part
    light: Tensor


@dataclass(frozen=True)
class Photo:
    """What fine-tuning on photos usually sees: a random part of each, as large as the whole, in slightly other light.

    The part is mirrored half of the time.
    """

    area: tuple[float, float]
    aspect: float
    light: float  # factors from 1 − l to 1 + l
    mirrors: ClassVar[bool] = True

    def draw(self, count: int, generator: torch.Generator, device: torch.device) -> Look:
        part = geometry.draw_part(count, self.area, self.aspect, generator, device)
        return Look(part, 1 + self.light * (2 * torch.rand((2, count), generator=generator, device=device) - 1))

    def apply(self, images: Tensor, draws: Look) -> Tensor:
        seen = geometry.enlarge(images, draws.part).float()
        brightness, contrast = draws.light[:, :, None, None, None]
        mean = seen.mean((1, 2, 3), keepdim=True)
        lit: Tensor = (mean + contrast * (seen - mean)) * brightness
        return lit.clamp(0, 255).round().to(torch.uint8)


class Hole(NamedTuple):
    """Where a square is cut out of each image, as shares of the image; every field is (N,)."""

    x: Tensor
    y: Tensor


def draw_hole(count: int, generator: torch.Generator, device: torch.device) -> Hole:
    """Draw the center of a hole for each of ``count`` images."""
    x, y = torch.rand((2, count), generator=generator, device=device)
    return Hole(x, y)


def cut_hole(images: Tensor, hole: Hole, share: float, fill: int) -> Tensor:
    """Images with a square of ``share`` of their shorter side filled, cut off at their edge."""
    height, width = images.shape[-2:]
    side = share * min(height, width)

    def covered(center: Tensor, length: int) -> Tensor:
        pixels = torch.arange(length, device=images.device) + 0.5
        return (pixels - (center * length)[:, None]).abs() < side / 2  # (N, length)

    inside = covered(hole.y, height)[:, None, :, None] & covered(hole.x, width)[:, None, None, :]
    return images.masked_fill(inside, fill)


@dataclass(frozen=True)
class Faded:
    """A strong view that needs no colors: crop, another brightness, and a hole."""

    crop: Crop
    brightness: float  # factors from 1 − b to 1 + b
    hole: float  # share of the shorter side

    @property
    def mirrors(self) -> bool:
        return self.crop.mirrors

    def draw(self, count: int, generator: torch.Generator, device: torch.device) -> tuple[CropFlip, Tensor, Hole]:
        factors = 1 + self.brightness * (2 * torch.rand(count, generator=generator, device=device) - 1)
        return self.crop.draw(count, generator, device), factors, draw_hole(count, generator, device)

    def apply(self, images: Tensor, draws: tuple[CropFlip, Tensor, Hole]) -> Tensor:
        crop, factors, hole = draws
        cropped = self.crop.apply(images, crop).float() * factors[:, None, None, None]
        return cut_hole(cropped.clamp(0, 255).to(torch.uint8), hole, self.hole, self.crop.fill)


@dataclass(frozen=True)
class Stronger:
    """FixMatch's strong view: crop, flip, some random operations that each come with a chance, and a hole."""

    crop: Crop
    policy: randaugment.Policy
    pool: tuple[int, ...]
    operations: int
    chance: float
    hole: float  # share of the shorter side

    @property
    def mirrors(self) -> bool:
        return self.crop.mirrors

    def draw(
        self, count: int, generator: torch.Generator, device: torch.device
    ) -> tuple[CropFlip, tuple[randaugment.Draws, ...], Hole]:
        crop = self.crop.draw(count, generator, device)
        every = [randaugment.draw(count, generator, device, self.pool, self.chance) for _ in range(self.operations)]
        return crop, tuple(every), draw_hole(count, generator, device)

    def apply(self, images: Tensor, draws: tuple[CropFlip, tuple[randaugment.Draws, ...], Hole]) -> Tensor:
        crop, every, hole = draws
        images = self.crop.apply(images, crop)
        for each in every:
            images = randaugment.apply(images, each, self.policy)
        return cut_hole(images, hole, self.hole, fill=127)


_CIFAR = Crop(padding=4, fill=128, flip=True)

POLICIES: dict[str, Augment] = {
    "none": Nothing(),
    "shift": Crop(padding=1, fill=0, flip=False),
    "crop-flip": _CIFAR,
    "photo": Photo(area=(0.5, 1.0), aspect=4 / 3, light=0.2),
    "paper": Strong(_CIFAR, randaugment.POLICIES["paper"]),
    "sane": Strong(_CIFAR, randaugment.POLICIES["sane"]),
    "sane-2": Strong(_CIFAR, randaugment.POLICIES["sane"], operations=2),
    "faded": Faded(Crop(padding=1, fill=0, flip=False), brightness=0.5, hole=0.4),
    "fixmatch": Stronger(_CIFAR, randaugment.POLICIES["fixmatch"], randaugment.FIXMATCH_POOL, 2, 0.5, hole=0.5),
}


def views(train: str, weak: str | None = None, strong: str | None = None) -> dict[str, Augment]:
    """The policy of every kind of view. What is not named follows from the policy that Baseline and rounds see."""
    plain = train in ("none", "shift")
    usual = "shift" if plain else "photo" if train == "photo" else "crop-flip"
    names = {TRAIN: train, WEAK: weak or usual}
    names[STRONG] = strong or ("faded" if plain else "fixmatch")
    return {kind: POLICIES[name] for kind, name in names.items()}


def require_shown(name: str, view: LabelingView) -> None:
    """Refuse a view for labeling that nets never see in training with this policy."""
    if view.scale != 1:
        raise ConfigError(
            f"labeling_views={view.scale:g}: scales are for pixels; images that get one label take flip and dropout"
        )
    if view.mirrored and not POLICIES[name].mirrors:
        others = ", ".join(key for key, policy in POLICIES.items() if policy.mirrors)
        raise ConfigError(
            f"labeling_views=flip needs nets that see mirrored images, and augment={name} mirrors none; "
            f"set augment to one of {others}, or leave flip out"
        )
