"""RandAugment for whole batches on the device: one random op of 16 per image, at its own random magnitude.

Every image passes through one pipeline of four stages (affine map, lookup table, blend, cutout). A stage is the
identity for images whose op belongs to another stage. That is one pass instead of sixteen, with static shapes and
nothing read back from the device. Results are equal to Pillow's. Only a compiler that fuses multiply-adds, as those
for GPUs do, may change a rare pixel of AutoContrast or of a blend by one gray level.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dmt.core import trees
from dmt.data.images import geometry
from dmt.errors import ConfigError

# The names in the paper, in the order of its table. Draws store positions in this tuple.
OPS = (
    "AutoContrast",
    "Equalize",
    "Invert",
    "Rotate",
    "Posterize",
    "Solarize",
    "SolarizeAdd",
    "Color",
    "Contrast",
    "Brightness",
    "Sharpness",
    "ShearX",
    "ShearY",
    "CutoutAbs",
    "TranslateXabs",
    "TranslateYabs",
)

MAGNITUDES = 10  # drawn uniformly from 1 … 10

# Values at magnitude 0 and magnitude 10. Ops that are not listed have no value, or take it from the policy.
RANGES = {
    "Rotate": (0.0, 30.0),  # degrees, random sign
    "Posterize": (0.0, 4.0),  # bits kept, rounded down, at least 1
    "Solarize": (0.0, 256.0),  # gray levels from here up are inverted
    "SolarizeAdd": (0.0, 110.0),  # gray levels added before solarizing at 128
    "Color": (0.1, 1.9),  # Pillow's "enhancement factor"; 1 leaves the image unchanged
    "Contrast": (0.1, 1.9),
    "Brightness": (0.1, 1.9),
    "Sharpness": (0.1, 1.9),
    "ShearX": (0.0, 0.3),  # pixels per pixel, random sign
    "ShearY": (0.0, 0.3),
}

Ranges = Mapping[str, tuple[float, float]]

CUTOUT_COLOR = (125, 123, 114)
GRAY_WEIGHTS = (19595, 38470, 7471)  # of red, green and blue in units of 1/65536, as in Pillow's conversion to "L"


FIXMATCH_RANGES = RANGES | {
    "Posterize": (4.0, 8.0),
    "Color": (0.05, 0.95),
    "Contrast": (0.05, 0.95),
    "Brightness": (0.05, 0.95),
    "Sharpness": (0.05, 0.95),
}
"""Ranges in FixMatch: enhancement factors stay below 1, and Posterize keeps at least four bits."""

IDENTITY = len(OPS)
"""The position that stands for no op."""

ALL = tuple(range(len(OPS)))
FIXMATCH_POOL = (*(n for n, name in enumerate(OPS) if name not in ("Invert", "SolarizeAdd", "CutoutAbs")), IDENTITY)
"""Positions of FixMatch's 14 ops, including the identity."""


@dataclass(frozen=True)
class Policy:
    """The strength of each op.

    Attributes:
        translation: the shift by Translate at magnitude 10.
        cutout: the side of the Cutout square at magnitude 10.
        relative: whether these two are shares of the image's sides instead of pixels.
        ranges: values of the other ops at magnitude 0 and 10.
    """

    translation: float
    cutout: float
    relative: bool
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=lambda: RANGES)

    def shift(self, length: int) -> float:
        """Return the longest shift along a side of `length` pixels."""
        return self.translation * length if self.relative else self.translation

    def hole(self, height: int, width: int) -> float:
        """Return the side of the largest cutout square in pixels; if relative, to the shorter side of the image."""
        return self.cutout * min(height, width) if self.relative else self.cutout


PAPER = Policy(translation=100.0, cutout=40.0, relative=False)  # as published: most shifts turn a 32×32 image black
SANE = Policy(translation=0.45, cutout=0.5, relative=True)
FIXMATCH = Policy(translation=0.3, cutout=0.5, relative=True, ranges=FIXMATCH_RANGES)
POLICIES = {"paper": PAPER, "sane": SANE, "fixmatch": FIXMATCH}


class Draws(NamedTuple):
    """One op for each image and the random numbers of all ops; every field is (N,)."""

    op: Tensor  # position in OPS
    magnitude: Tensor  # 1 … 10
    sign: Tensor  # −1 or 1; used by Rotate, Shear and Translate
    cutout_x: Tensor  # in [0, 1), the position of the Cutout center between 1 and the width
    cutout_y: Tensor


def draw(
    count: int, generator: torch.Generator, device: torch.device, pool: Sequence[int] = ALL, chance: float = 1.0
) -> Draws:
    """Draw an op, its magnitude and its other random numbers for each of `count` images of any size.

    Args:
        count: number of images.
        generator: source of randomness, on the device.
        device: where the draws are needed.
        pool: positions in `OPS` to draw from.
        chance: probability that the op is applied.
    """
    shape = (count,)
    op = torch.randint(len(pool), shape, generator=generator, device=device)
    if pool != ALL:
        op = trees.send(np.array(pool), device)[op]
    if chance < 1:
        op = torch.where(torch.rand(shape, generator=generator, device=device) < chance, op, IDENTITY)
    magnitude = torch.randint(1, MAGNITUDES + 1, shape, generator=generator, device=device)
    sign = torch.randint(2, shape, generator=generator, device=device) * 2 - 1
    cutout_x, cutout_y = torch.rand((2, count), generator=generator, device=device)
    return Draws(op, magnitude, sign, cutout_x, cutout_y)


def apply(images: Tensor, draws: Draws, policy: Policy) -> Tensor:
    """Apply to each of the uint8 RGB `images` (N, 3, H, W) the op that was drawn for it."""
    if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[1] != 3:
        raise ConfigError(
            f"RandAugment takes uint8 RGB images (N, 3, H, W), not {images.dtype} {tuple(images.shape)}; for gray "
            "ones, set augment, augment_weak or augment_strong to a policy without it, e.g. augment_strong=faded"
        )
    height, width = images.shape[-2:]
    moved = geometry.affine(images, _matrices(draws, policy, height, width))
    tables = _lookup_tables(moved, draws, policy.ranges)  # (N, 3, 256)
    pixels = tables.gather(2, moved.flatten(2).long()).view(images.shape)
    return _cut_out(_blend(pixels, draws, policy.ranges), draws, policy)


def _chose(draws: Draws, name: str) -> Tensor:
    return draws.op == OPS.index(name)  # (N,)


def _value(draws: Draws, low: float, high: float) -> Tensor:
    """Return v = (m / 10)·(high − low) + low, (N,), in double precision as Python would compute it."""
    return draws.magnitude.double() / MAGNITUDES * (high - low) + low


def _matrices(draws: Draws, policy: Policy, height: int, width: int) -> Tensor:
    """Return the affine map of each image, (N, 6): the identity unless its op is Rotate, Shear or Translate."""

    def signed(name: str, low: float, high: float) -> Tensor:
        return torch.where(_chose(draws, name), draws.sign * _value(draws, low, high), 0.0)

    # The map goes from output to input, so a rotation by +v degrees samples at −v.
    angle = -torch.deg2rad(signed("Rotate", *policy.ranges["Rotate"]))
    cos, sin = angle.cos(), angle.sin()
    x, y = width / 2, height / 2  # the rotation's center
    return torch.stack(
        [
            cos,
            sin + signed("ShearX", *policy.ranges["ShearX"]),
            x - cos * x - sin * y + signed("TranslateXabs", 0.0, policy.shift(width)),
            signed("ShearY", *policy.ranges["ShearY"]) - sin,
            cos,
            y + sin * x - cos * y + signed("TranslateYabs", 0.0, policy.shift(height)),
        ],
        dim=1,
    )


def _lookup_tables(images: Tensor, draws: Draws, ranges: Ranges) -> Tensor:
    """Return the new value of each gray level, uint8 (N, 3, 256): the level itself for images of another stage."""
    levels = torch.arange(256, device=images.device, dtype=torch.int32)
    counts = _histograms(images)
    choices = {
        "AutoContrast": _stretched(counts, levels),
        "Equalize": _equalized(counts, levels),
        "Invert": 255 - levels,
        "Posterize": _posterized(draws, levels, ranges),
        "Solarize": _inverted_from(levels, _per_image(_value(draws, *ranges["Solarize"]))),
        "SolarizeAdd": _solarized_after_adding(draws, levels, ranges),
    }
    tables = levels.expand(counts.shape)
    for name, entries in choices.items():
        tables = torch.where(_per_image(_chose(draws, name)), entries, tables)
    return tables.to(torch.uint8)


def _per_image(values: Tensor) -> Tensor:
    return values[:, None, None]  # (N, 1, 1), against (N, 3, 256)


def _histograms(images: Tensor) -> Tensor:
    """Count the gray levels of each image and channel, int32 (N, 3, 256)."""
    levels = images.flatten(2).long()
    counts = torch.zeros(*levels.shape[:2], 256, device=images.device, dtype=torch.int32)
    return counts.scatter_add(2, levels, torch.ones_like(levels, dtype=torch.int32))


def _stretched(counts: Tensor, levels: Tensor) -> Tensor:
    """AutoContrast: map the darkest level of a channel to 0 and the lightest to 255; keep a constant channel."""
    present = counts > 0
    low = torch.where(present, levels, 255).amin(2, keepdim=True)
    high = torch.where(present, levels, 0).amax(2, keepdim=True)
    # Double precision and this order of operations as in Pillow, which truncates, so the last bit can change a level.
    # The numerator is a tensor because torch computes `255.0 / tensor` as a reciprocal and a product.
    span = (high - low).clamp(min=1).double()
    scale = torch.full_like(span, 255.0) / span
    entries = (levels * scale + -low * scale).clamp(0, 255).int()
    return torch.where(high > low, entries, levels)


def _equalized(counts: Tensor, levels: Tensor) -> Tensor:
    """Equalize: spread pixels evenly over the levels; keep a channel with fewer than 255 pixels below its lightest."""
    below = counts.cumsum(2, dtype=torch.int32) - counts
    lightest = torch.where(counts > 0, levels, 0).amax(2, keepdim=True)
    step = below.gather(2, lightest.long()) // 255  # (N, 3, 1)
    entries = (below + step // 2) // step.clamp(min=1)
    return torch.where(step > 0, entries.clamp(max=255), levels)


def _posterized(draws: Draws, levels: Tensor, ranges: Ranges) -> Tensor:
    kept = _value(draws, *ranges["Posterize"]).int().clamp(min=1)
    dropped = _per_image(8 - kept)
    return levels >> dropped << dropped  # (N, 1, 256)


def _solarized_after_adding(draws: Draws, levels: Tensor, ranges: Ranges) -> Tensor:
    added = _per_image(_value(draws, *ranges["SolarizeAdd"]).int())
    return _inverted_from((levels + added).clamp(max=255), 128)


def _inverted_from(levels: Tensor, threshold: Tensor | int) -> Tensor:
    return torch.where(levels < threshold, levels, 255 - levels)


def _blend(images: Tensor, draws: Draws, ranges: Ranges) -> Tensor:
    """Color, Contrast, Brightness, Sharpness: blend with, or extrapolate from, an image that lacks that property."""
    gray = _grayscale(images)
    size = gray.shape[-2] * gray.shape[-1]
    mean = (2 * gray.sum((1, 2, 3), keepdim=True) + size) // (2 * size)  # (N, 1, 1, 1), rounded half up
    black = torch.zeros_like(mean)
    # Small shapes first, so that only the last `where` runs over every channel of every pixel.
    lacking = {"Brightness": black, "Contrast": mean, "Color": gray, "Sharpness": _smooth(images)}
    base, factor = black.float(), torch.ones_like(mean, dtype=torch.float32)
    for name, degenerate in lacking.items():
        chosen = _chose(draws, name)[:, None, None, None]
        base = torch.where(chosen, degenerate.float(), base)
        factor = torch.where(chosen, _value(draws, *ranges[name]).float()[:, None, None, None], factor)
    # Single precision, then truncation, as in Pillow. Factor 1 with base 0 leaves other images unchanged.
    return (base + factor * (images.float() - base)).clamp(0, 255).to(torch.uint8)


def _grayscale(images: Tensor) -> Tensor:
    """Return the rounded luma of uint8 RGB images, int32 (N, 1, H, W)."""
    red, green, blue = images.int().unbind(1)
    luma = red * GRAY_WEIGHTS[0] + green * GRAY_WEIGHTS[1] + blue * GRAY_WEIGHTS[2]
    return ((luma + 32768) >> 16)[:, None]


def _smooth(images: Tensor) -> Tensor:
    """Apply Pillow's SMOOTH filter, (5 · pixel + 8 neighbors) / 13, which leaves the border unchanged; int16."""
    pixels = images.short()  # (N, 3, H, W); 2·13·255 still fits
    rows = pixels[:, :, :-2] + pixels[:, :, 1:-1] + pixels[:, :, 2:]
    box = rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:]
    weighted = box + 4 * pixels[:, :, 1:-1, 1:-1]
    smooth = pixels.clone()
    smooth[:, :, 1:-1, 1:-1] = (2 * weighted + 13) // 26  # rounded to nearest; 13 is odd, so there are no ties
    return smooth


def _cut_out(images: Tensor, draws: Draws, policy: Policy) -> Tensor:
    """Cutout: fill a square, clipped at the edge of the image."""
    height, width = images.shape[-2:]
    side = _value(draws, 0.0, policy.hole(height, width))  # (N,)
    rows = _covered(draws.cutout_y, side, height)[:, :, None]
    columns = _covered(draws.cutout_x, side, width)[:, None, :]
    erased = _chose(draws, "CutoutAbs")[:, None, None] & rows & columns  # (N, H, W)
    channels = zip(images.unbind(1), CUTOUT_COLOR, strict=True)
    return torch.stack([channel.masked_fill(erased, level) for channel, level in channels], dim=1)


def _covered(fraction: Tensor, side: Tensor, length: int) -> Tensor:
    """Return which of `length` positions a cutout covers, (N, length) bool.

    As in the published code, the center is drawn from 1 to `length`, not from 0, since its single argument is taken
    as the other bound of the range. The near corner is moved inside the image before the far corner is computed from
    it, and both corners are covered.
    """
    center = 1 + fraction.double() * (length - 1)
    near = (center - side / 2).clamp(min=0).floor()
    far = (near + side).clamp(max=length).floor()
    positions = torch.arange(length, device=fraction.device)
    return (positions >= near[:, None]) & (positions <= far[:, None])
