"""Strong views of images whose pixels get labels: other colors, the same geometry. For whole batches, on the device.

Color jitter with probability 0.8, grayscale with 0.2, blur with 0.5, each image by draws of its own; the strengths are
those that FixMatch's heirs for pixels use. Static shapes, nothing is read back: it can be recorded.
"""

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

BRIGHTNESS, CONTRAST, SATURATION, HUE = 0.5, 0.5, 0.5, 0.25
JITTERED, GRAY, BLURRED = 0.8, 0.2, 0.5
SIGMA = (0.1, 2.0)
RADIUS = 4  # pixels: two standard deviations of the widest blur
LUMA = (0.299, 0.587, 0.114)


class ColorDraws(NamedTuple):
    """What becomes of each image; every field is (N,) float32."""

    brightness: Tensor  # factors around 1
    contrast: Tensor
    saturation: Tensor  # 0 for gray
    hue: Tensor  # turns of the color circle
    sigma: Tensor  # of the blur in pixels; 0 for none


def draw(count: int, generator: torch.Generator, device: torch.device | str) -> ColorDraws:
    """Draw colors for each of ``count`` images."""
    uniform = torch.rand(8, count, generator=generator, device=device)
    jittered = uniform[0] < JITTERED
    ranges = (BRIGHTNESS, CONTRAST, SATURATION)
    factors = [torch.where(jittered, 1 + r * (2 * u - 1), 1.0) for r, u in zip(ranges, uniform[1:4], strict=True)]
    hue = torch.where(jittered, HUE * (2 * uniform[4] - 1), 0.0)
    saturation = torch.where(uniform[5] < GRAY, 0.0, factors[2])
    low, high = SIGMA
    sigma = torch.where(uniform[6] < BLURRED, low + (high - low) * uniform[7], 0.0)
    return ColorDraws(factors[0], factors[1], saturation, hue, sigma)


def apply(images: Tensor, draws: ColorDraws) -> Tensor:
    """Images (N, 3, H, W) float32 in [0, 1] in their new colors, in the same memory layout."""
    factor = draws.brightness[:, None, None, None]
    changed = (images * factor).clamp(0, 1)
    mean = luma(changed).mean((2, 3), keepdim=True)
    changed = mean.lerp(changed, draws.contrast[:, None, None, None]).clamp(0, 1)
    changed = luma(changed).lerp(changed, draws.saturation[:, None, None, None]).clamp(0, 1)
    return _blurred(_turned(changed, draws.hue), draws.sigma)


def luma(images: Tensor) -> Tensor:
    """(N, 1, H, W): how light every pixel is."""
    red, green, blue = images.unbind(1)
    return (LUMA[0] * red + LUMA[1] * green + LUMA[2] * blue)[:, None]


def _turned(images: Tensor, hue: Tensor) -> Tensor:
    """Colors turned around the gray axis of YIQ, where a hue is an angle: one small matrix for every image."""
    angle = 2 * torch.pi * hue
    cos, sin = angle.cos(), angle.sin()
    cells = [still + along * cos + across * sin for still, along, across in zip(*_TURN, strict=True)]
    matrix = torch.stack(cells, 1).view(-1, 3, 3)
    return torch.einsum("nij,njhw->nihw", matrix, images).clamp(0, 1)


def _turning() -> tuple[list[float], list[float], list[float]]:
    """The nine cells of a turn by φ are a + b·cos φ + c·sin φ: plain numbers, so that no tensor has to travel."""
    there = np.array([LUMA, (0.595716, -0.274453, -0.321263), (0.211456, -0.522591, 0.311135)])
    back = np.linalg.inv(there)
    turns = (np.diag([1.0, 0, 0]), np.diag([0, 1.0, 1.0]), np.array([[0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]]))
    still, along, across = ((back @ turn @ there).flatten().tolist() for turn in turns)
    return still, along, across


_TURN = _turning()


def _blurred(images: Tensor, sigma: Tensor) -> Tensor:
    """A Gaussian of each image's own width, along rows, then along columns; the border is repeated."""
    offsets = torch.arange(-RADIUS, RADIUS + 1, device=images.device, dtype=images.dtype)
    kernel = torch.exp(-0.5 * (offsets / sigma.clamp_min(1e-3)[:, None]) ** 2)
    kernel = kernel / kernel.sum(1, keepdim=True)  # (N, 2R + 1); a spike where nothing is blurred
    count, channels = images.shape[:2]
    flat = images.contiguous().view(1, count * channels, *images.shape[2:])
    kernels = kernel.repeat_interleave(channels, 0)[:, None]  # (N·C, 1, 2R + 1)
    flat = F.conv2d(F.pad(flat, (RADIUS, RADIUS, 0, 0), "replicate"), kernels[:, :, None, :], groups=count * channels)
    flat = F.conv2d(F.pad(flat, (0, 0, RADIUS, RADIUS), "replicate"), kernels[:, :, :, None], groups=count * channels)
    return flat.view(images.shape).contiguous(memory_format=torch.channels_last)
