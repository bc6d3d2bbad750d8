"""Discriminators, trained beside the nets: a score per pixel, a score per image, or a map of flaws.

Convolutions that halve the resolution are 4×4 with stride 2. Images smaller than `SIDE` are enlarged first, and all
are padded to multiples of `STRIDE`.
"""

import itertools
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmt.core import noise

SIDE, STRIDE = 64, 32
SLOPE = 0.2


def frozen(judge: nn.Module, *given: Any) -> Any:
    """Return a module's output with gradient to its inputs and none to its parameters."""
    parameters = {name: each.detach() for name, each in judge.named_parameters()}
    return torch.func.functional_call(judge, parameters, given)


class PixelJudge(nn.Module):
    """Discriminator from maps (N, C, H, W) to a score per pixel, (N, H, W): five convolutions, and upsampling."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(*_halving(channels, width, 4), nn.Conv2d(8 * width, 1, 4, 2, 1))

    def forward(self, maps: Tensor) -> Tensor:
        return grown(self.body(_enlarged(maps)), maps)


class ImageJudge(nn.Module):
    """Discriminator from maps (N, C, H, W) to a score per image, (N,), and pooled features, (N, F)."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        layers = _halving(channels, width, 4)
        self.layers = nn.ModuleList(nn.Sequential(*layers[place : place + 2]) for place in range(0, len(layers), 2))
        self.score = nn.Linear(8 * width, 1)

    def forward(self, maps: Tensor, seeds: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return scores and features; seeds (N, 3) turn on channel dropout (p = ½) after the first three layers."""
        features = _enlarged(maps)
        for place, layer in enumerate(self.layers):
            features = layer(features)
            if seeds is not None and place < seeds.shape[1]:
                kept = noise.uniform(seeds[:, place], features.shape[1]) < 0.5
                features = features * (2.0 * kept)[:, :, None, None]
        pooled = features.mean((2, 3))
        return self.score(pooled)[:, 0], pooled


class FlawDetector(nn.Module):
    """Network from maps (N, C, H, W) to a map of flaws, (N, H, W): seven normalized convolutions, and one to a map."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        layers = [*_normed(channels, width, 2)]
        for before, after in ((width, 2 * width), (2 * width, 4 * width), (4 * width, 8 * width)):
            layers += [*_normed(before, after, 2), *_normed(after, after, 1)]
        self.body = nn.Sequential(*layers, nn.Conv2d(8 * width, 1, 4, 2, 1))

    def forward(self, maps: Tensor) -> Tensor:
        return grown(self.body(_enlarged(maps)), maps)


def _halving(channels: int, width: int, count: int) -> list[nn.Module]:
    widths = [channels, *(width * 2**place for place in range(count))]
    convolutions = [nn.Conv2d(*pair, 4, 2, 1) for pair in itertools.pairwise(widths)]
    for each in convolutions:
        nn.init.kaiming_normal_(each.weight, SLOPE)  # with torch's default, features would shrink layer by layer
    return [layer for each in convolutions for layer in (each, nn.LeakyReLU(SLOPE))]


def _normed(before: int, after: int, stride: int) -> list[nn.Module]:
    convolution = nn.Conv2d(before, after, 4, 2, 1) if stride == 2 else nn.Conv2d(before, after, 3, 1, 1)
    return [convolution, nn.InstanceNorm2d(after, affine=True), nn.LeakyReLU(SLOPE)]


def _enlarged(maps: Tensor) -> Tensor:
    """Enlarge maps to sides of at least `SIDE`, then pad them at the bottom and right to multiples of `STRIDE`."""
    size = [max(SIDE, side) for side in maps.shape[-2:]]
    if size != list(maps.shape[-2:]):
        maps = F.interpolate(maps, size=size, mode="bilinear", align_corners=False)
    return F.pad(maps, (0, -size[1] % STRIDE, 0, -size[0] % STRIDE))


def grown(scores: Tensor, maps: Tensor) -> Tensor:
    """Resize scores (N, 1, h, w) of enlarged and padded maps to the size of the original maps: (N, H, W)."""
    size = [max(SIDE, side) for side in maps.shape[-2:]]
    scores = F.interpolate(scores, scale_factor=float(STRIDE), mode="bilinear", align_corners=False)
    scores = scores[..., : size[0], : size[1]]
    if size != list(maps.shape[-2:]):
        scores = F.interpolate(scores, size=maps.shape[-2:], mode="bilinear", align_corners=False)
    return scores[:, 0]
