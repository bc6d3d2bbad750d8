"""Augmentation policies by name. They map (N, C, H, W) uint8 to the same, with separate random draws for every image.

A policy first draws a tree of random tensors, then applies it. Applying is deterministic tensor code, the same in
every step. Every kind of view has its policy: Baseline and rounds see ``train`` views, online methods ``weak`` and
``strong`` ones.
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
    """Interface of an augmentation policy."""

    @property
    def mirrors(self) -> bool:
        """Whether some images are mirrored horizontally."""

    def draw(self, count: int, generator: torch.Generator, device: torch.device) -> Any:
        """Draw the augmentation of ``count`` images, as a tree of tensors."""

    def apply(self, images: Tensor, draws: Any) -> Tensor:
        """Augment images as drawn."""


@dataclass(frozen=True)
class Nothing:
    """No augmentation."""

    mirrors: ClassVar[bool] = False

    def draw(self, count: int, generator: torch.Generator, device: torch.device) -> None:
        return None

    def apply(self, images: Tensor, draws: None) -> Tensor:
        return images


@dataclass(frozen=True)
class Crop:
    """A random crop of the padded image, then a random horizontal flip if ``flip``."""

    padding: int
    fill: int | None  # value of the padding; None to pad with the image's reflection
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
        operations: number of operations in sequence; one in the paper.
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
    """Draws of `Photo`: the crop, and factors (2, N) for brightness and contrast."""

    part: geometry.Part
    light: Tensor


@dataclass(frozen=True)
class Photo:
    """The usual augmentation for fine-tuning on photos: a random resized crop, flip, brightness and contrast jitter.

    Attributes:
        area: least and greatest area of the crop, as a share of the image.
        aspect: greatest factor by which the crop's aspect ratio may differ from the image's.
        light: brightness and contrast factors are drawn from 1 − light to 1 + light.
    """

    area: tuple[float, float]
    aspect: float
    light: float
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
    """The center of a square to cut out of each image, relative to its sides; every field is (N,)."""

    x: Tensor
    y: Tensor


def draw_hole(count: int, generator: torch.Generator, device: torch.device) -> Hole:
    """Draw the center of a hole for each of ``count`` images."""
    x, y = torch.rand((2, count), generator=generator, device=device)
    return Hole(x, y)


def cut_hole(images: Tensor, hole: Hole, share: float, fill: int) -> Tensor:
    """Fill a square in each image, with a side of ``share`` of the image's shorter side, clipped at the edge."""
    height, width = images.shape[-2:]
    side = share * min(height, width)

    def covered(center: Tensor, length: int) -> Tensor:
        pixels = torch.arange(length, device=images.device) + 0.5
        return (pixels - (center * length)[:, None]).abs() < side / 2  # (N, length)

    inside = covered(hole.y, height)[:, None, :, None] & covered(hole.x, width)[:, None, None, :]
    return images.masked_fill(inside, fill)


@dataclass(frozen=True)
class Faded:
    """A strong view that also works on gray images: crop, brightness jitter, and a cut-out square."""

    crop: Crop
    brightness: float  # factors are drawn from 1 − brightness to 1 + brightness
    hole: float  # side of the square, as a share of the image's shorter side

    @property
    def mirrors(self) -> bool:
        return self.crop.mirrors

    def draw(self, count: int, generator: torch.Generator, device: torch.device) -> tuple[CropFlip, Tensor, Hole]:
        factors = 1 + self.brightness * (2 * torch.rand(count, generator=generator, device=device) - 1)
        return self.crop.draw(count, generator, device), factors, draw_hole(count, generator, device)

    def apply(self, images: Tensor, draws: tuple[CropFlip, Tensor, Hole]) -> Tensor:
        crop, factors, hole = draws
        cropped = self.crop.apply(images, crop).float() * factors[:, None, None, None]
        return cut_hole(cropped.clamp(0, 255).to(torch.uint8), hole, self.hole, self.crop.fill or 0)


@dataclass(frozen=True)
class Stronger:
    """FixMatch's strong view: crop, flip, several random operations with a probability each, and a cut-out square."""

    crop: Crop
    policy: randaugment.Policy
    pool: tuple[int, ...]
    operations: int
    chance: float
    hole: float  # side of the square, as a share of the image's shorter side

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
_REFLECTED = Crop(padding=4, fill=None, flip=True)

POLICIES: dict[str, Augment] = {
    "none": Nothing(),
    "shift": Crop(padding=1, fill=0, flip=False),
    "crop-flip": _CIFAR,
    "reflect-flip": _REFLECTED,
    "photo": Photo(area=(0.5, 1.0), aspect=4 / 3, light=0.2),
    "paper": Strong(_CIFAR, randaugment.POLICIES["paper"]),
    "sane": Strong(_CIFAR, randaugment.POLICIES["sane"]),
    "sane-2": Strong(_CIFAR, randaugment.POLICIES["sane"], operations=2),
    "faded": Faded(Crop(padding=1, fill=0, flip=False), brightness=0.5, hole=0.4),
    "fixmatch": Stronger(_CIFAR, randaugment.POLICIES["fixmatch"], randaugment.FIXMATCH_POOL, 2, 0.5, hole=0.5),
    "reflect-fixmatch": Stronger(
        _REFLECTED, randaugment.POLICIES["fixmatch"], randaugment.FIXMATCH_POOL, 2, 0.5, hole=0.5
    ),
}


def views(train: str, weak: str | None = None, strong: str | None = None) -> dict[str, Augment]:
    """Return the policy of every kind of view. Those not named follow from the policy of ``train`` views."""
    plain = train in ("none", "shift")
    usual = "shift" if plain else "photo" if train == "photo" else "crop-flip"
    names = {TRAIN: train, WEAK: weak or usual}
    names[STRONG] = strong or ("faded" if plain else "fixmatch")
    return {kind: POLICIES[name] for kind, name in names.items()}


def require_shown(name: str, view: LabelingView) -> None:
    """Refuse a labeling view that nets never see in training with this policy."""
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
