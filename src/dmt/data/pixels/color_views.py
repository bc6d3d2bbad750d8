"""Strong views for segmentation: color augmentation that keeps the geometry, for whole batches on the device.

Color jitter with probability 0.8, grayscale with 0.2 and blur with 0.5, drawn separately for each image. The strengths
are those of FixMatch's successors for segmentation. Shapes are static and nothing is read back from the device, so it
can be captured in a CUDA graph.
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
    """The color augmentation of each image; every field is (N,) float32."""

    brightness: Tensor  # factor around 1
    contrast: Tensor
    saturation: Tensor  # 0 for gray
    hue: Tensor  # rotation, in turns of the color circle
    sigma: Tensor  # of the Gaussian blur in pixels; 0 for none


def draw(count: int, generator: torch.Generator, device: torch.device | str) -> ColorDraws:
    """Draw the color augmentation of ``count`` images."""
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
    """Augment the colors of images (N, 3, H, W) float32 in [0, 1]; the memory format of the result is channels_last."""
    factor = draws.brightness[:, None, None, None]
    changed = (images * factor).clamp(0, 1)
    mean = luma(changed).mean((2, 3), keepdim=True)
    changed = mean.lerp(changed, draws.contrast[:, None, None, None]).clamp(0, 1)
    changed = luma(changed).lerp(changed, draws.saturation[:, None, None, None]).clamp(0, 1)
    return _blurred(_turned(changed, draws.hue), draws.sigma)


def luma(images: Tensor) -> Tensor:
    """Return the luma of every pixel, (N, 1, H, W)."""
    red, green, blue = images.unbind(1)
    return (LUMA[0] * red + LUMA[1] * green + LUMA[2] * blue)[:, None]


def _turned(images: Tensor, hue: Tensor) -> Tensor:
    """Rotate colors around the gray axis of YIQ, where hue is an angle, by one 3×3 matrix per image."""
    angle = 2 * torch.pi * hue
    cos, sin = angle.cos(), angle.sin()
    cells = [still + along * cos + across * sin for still, along, across in zip(*_TURN, strict=True)]
    matrix = torch.stack(cells, 1).view(-1, 3, 3)
    return torch.einsum("nij,njhw->nihw", matrix, images).clamp(0, 1)


def _turning() -> tuple[list[float], list[float], list[float]]:
    """Return a, b, c such that a + b·cos φ + c·sin φ are the nine entries of the RGB matrix that rotates hue by φ.

    They are Python numbers, so that no tensor has to be copied to the device.
    """
    there = np.array([LUMA, (0.595716, -0.274453, -0.321263), (0.211456, -0.522591, 0.311135)])
    back = np.linalg.inv(there)
    turns = (np.diag([1.0, 0, 0]), np.diag([0, 1.0, 1.0]), np.array([[0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]]))
    still, along, across = ((back @ turn @ there).flatten().tolist() for turn in turns)
    return still, along, across


_TURN = _turning()


def _blurred(images: Tensor, sigma: Tensor) -> Tensor:
    """Blur each image by a Gaussian of its own width, along rows, then along columns, replicating the border."""
    offsets = torch.arange(-RADIUS, RADIUS + 1, device=images.device, dtype=images.dtype)
    kernel = torch.exp(-0.5 * (offsets / sigma.clamp_min(1e-3)[:, None]) ** 2)
    kernel = kernel / kernel.sum(1, keepdim=True)  # (N, 2R + 1); a single 1 for images without blur
    count, channels = images.shape[:2]
    flat = images.contiguous().view(1, count * channels, *images.shape[2:])
    kernels = kernel.repeat_interleave(channels, 0)[:, None]  # (N·C, 1, 2R + 1)
    flat = F.conv2d(F.pad(flat, (RADIUS, RADIUS, 0, 0), "replicate"), kernels[:, :, None, :], groups=count * channels)
    flat = F.conv2d(F.pad(flat, (0, 0, RADIUS, RADIUS), "replicate"), kernels[:, :, :, None], groups=count * channels)
    return flat.view(images.shape).contiguous(memory_format=torch.channels_last)
