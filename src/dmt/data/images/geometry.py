"""Geometric augmentation: random crop and flip, zoom, and affine maps, each vectorized over the whole batch.

Shapes never depend on values and nothing is read back from the device, so all of it can be compiled or captured
in a CUDA graph. Random draws are separate from their application: they are plain tensors that a test can set.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

FIXED_POINT = 65536  # Pillow computes affine coordinates in units of 1/65536 pixel


class CropFlip(NamedTuple):
    """The crop window of each image and whether it is mirrored; every field is (N,).

    Offsets are relative to the corner of the unpadded image, so they lie in −padding … padding, and the padding itself
    need not be stored.
    """

    dx: Tensor
    dy: Tensor
    flipped: Tensor


def draw_crop_flip(
    count: int, padding: int, flip: bool, generator: torch.Generator, device: torch.device | str
) -> CropFlip:
    """Draw a crop window for each of `count` images and, if `flip`, mirror it with probability 0.5."""
    dx, dy = torch.randint(-padding, padding + 1, (2, count), generator=generator, device=device)
    # Drawn even if unused, so that switching flips off does not change any later draw of the stream.
    coin = torch.randint(0, 2, (count,), generator=generator, device=device)
    return CropFlip(dx, dy, coin.bool() if flip else torch.zeros_like(coin, dtype=torch.bool))


def crop_flip(images: Tensor, draws: CropFlip, fill: int | None) -> Tensor:
    """Shift each image (N, C, H, W) by its window, then mirror; the size stays.

    Args:
        images: the images.
        draws: windows, and which images to mirror.
        fill: value outside of the image; None to reflect the image at its outermost pixels.
    """
    height, width = images.shape[-2:]
    x = torch.arange(width, device=images.device)
    # The crop comes first: mirroring reverses the window, not the image below it.
    x = torch.where(draws.flipped[:, None], width - 1 - x, x)  # (N, W)
    columns = x + draws.dx[:, None]
    rows = torch.arange(height, device=images.device) + draws.dy[:, None]  # (N, H)
    if fill is None:
        rows, columns = _reflected(rows, height), _reflected(columns, width)
    return _sample(images, rows[:, :, None], columns[:, None, :], fill or 0)


def _reflected(places: Tensor, length: int) -> Tensor:
    """Reflect places outside of 0 … length − 1, by less than the length, at the first and the last one."""
    places = places.abs()
    return torch.where(places < length, places, 2 * (length - 1) - places)


class Part(NamedTuple):
    """A crop of each image and whether it is mirrored; every field is (N,). Lengths are relative to the image."""

    width: Tensor
    height: Tensor
    x: Tensor  # of the crop's center, from −1 at the left edge of the image to 1 at the right
    y: Tensor
    flipped: Tensor


def draw_part(
    count: int, area: tuple[float, float], aspect: float, generator: torch.Generator, device: torch.device | str
) -> Part:
    """Draw a crop of each of ``count`` images, mirrored with probability 0.5.

    Args:
        count: number of images.
        area: least and greatest area of the crop, as a share of the image.
        aspect: greatest factor by which the crop's aspect ratio may differ from the image's.
        generator: source of randomness, on the device.
        device: where the draws are needed.
    """
    uniform = torch.rand((5, count), generator=generator, device=device)
    low, high = area
    size, shape = low + (high - low) * uniform[0], aspect ** (2 * uniform[1] - 1)
    width, height = (size * shape).sqrt().clamp(max=1), (size / shape).sqrt().clamp(max=1)
    x, y = (1 - width) * (2 * uniform[2] - 1), (1 - height) * (2 * uniform[3] - 1)
    return Part(width, height, x, y, uniform[4] < 0.5)


def enlarge(images: Tensor, part: Part) -> Tensor:
    """Resize the crop of each image (N, C, H, W) to the size of the whole image, bilinearly; uint8."""
    height, width = images.shape[-2:]
    centers = [(2 * torch.arange(length, device=images.device) + 1) / length - 1 for length in (height, width)]
    across = torch.where(part.flipped, -part.width, part.width)
    columns = part.x[:, None] + across[:, None] * centers[1]  # (N, W)
    rows = part.y[:, None] + part.height[:, None] * centers[0]  # (N, H)
    shape = (len(images), height, width)
    grid = torch.stack([columns[:, None, :].expand(shape), rows[:, :, None].expand(shape)], -1)
    found = F.grid_sample(images.float(), grid, mode="bilinear", padding_mode="border", align_corners=False)
    return found.round().to(torch.uint8)


def affine(images: Tensor, matrix: Tensor) -> Tensor:
    """Transform every image (N, C, H, W) by its own `matrix` (N, 6): nearest neighbor, black outside of the image.

    A matrix (a, b, c, d, e, f) maps output to input coordinates: x' = a·x + b·y + c, y' = d·x + e·y + f, with x and y
    at pixel centers. The fixed-point arithmetic is that of Pillow's `Image.transform`, so results are equal to
    Pillow's pixel for pixel.
    """
    height, width = images.shape[-2:]
    a, b, c, d, e, f = matrix.double().unbind(1)
    # c and f include the half pixel from a pixel's corner to its center.
    terms = torch.stack([a, b, c + a * 0.5 + b * 0.5, d, e, f + d * 0.5 + e * 0.5])  # (6, N)
    fixed = torch.floor(terms * FIXED_POINT + 0.5).to(torch.int32)
    a, b, c, d, e, f = fixed[:, :, None, None].unbind(0)  # each (N, 1, 1)
    x = torch.arange(width, device=images.device, dtype=torch.int32)
    y = torch.arange(height, device=images.device, dtype=torch.int32)[:, None]
    columns = (a * x + b * y + c) >> 16  # (N, H, W); the shift rounds down, also negative values
    rows = (d * x + e * y + f) >> 16
    return _sample(images, rows, columns, fill=0)


def _sample(images: Tensor, rows: Tensor, columns: Tensor, fill: int) -> Tensor:
    """Return pixel (rows, columns) of each image, `fill` outside; both indices broadcast to (N, H, W)."""
    channels, height, width = images.shape[1:]
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)  # (N, H, W)
    flat = rows.clamp(0, height - 1) * width + columns.clamp(0, width - 1)
    flat = flat.long().flatten(1)[:, None].expand(-1, channels, -1)  # (N, C, H·W)
    picked = images.flatten(2).gather(2, flat).view(images.shape)
    return picked.masked_fill(~inside[:, None], fill)
