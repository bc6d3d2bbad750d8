"""Moving pixels about: random crop and flip, and affine maps, each as one gather over the whole batch.

Shapes never depend on values and nothing is read back from the device: all of it can be compiled, or captured
in a CUDA graph. Drawing is apart from applying: the draws are plain tensors that a test can set by hand.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

FIXED_POINT = 65536  # Pillow keeps affine coordinates in 1/65536 of a pixel


class CropFlip(NamedTuple):
    """Where each image's window lies and whether it is mirrored; every field is (N,).

    Offsets count from the image's own corner, so they lie in −padding … padding and say all there is to know
    about the padding.
    """

    dx: Tensor
    dy: Tensor
    flipped: Tensor


def draw_crop_flip(
    count: int, padding: int, flip: bool, generator: torch.Generator, device: torch.device | str
) -> CropFlip:
    """Draw a window for each of `count` images, and a fair coin for its mirror image if `flip`."""
    dx, dy = torch.randint(-padding, padding + 1, (2, count), generator=generator, device=device)
    # The coin is drawn even when unused: switching flips off leaves every later draw of the stream in place.
    coin = torch.randint(0, 2, (count,), generator=generator, device=device)
    return CropFlip(dx, dy, coin.bool() if flip else torch.zeros_like(coin, dtype=torch.bool))


def crop_flip(images: Tensor, draws: CropFlip, fill: int) -> Tensor:
    """Crop each image (N, C, H, W), keeping its size, with `fill` where the window leaves it; then mirror."""
    height, width = images.shape[-2:]
    x = torch.arange(width, device=images.device)
    # The crop comes first, so the mirror reverses the window rather than the image under it.
    x = torch.where(draws.flipped[:, None], width - 1 - x, x)  # (N, W)
    columns = x + draws.dx[:, None]
    rows = torch.arange(height, device=images.device) + draws.dy[:, None]  # (N, H)
    return _sample(images, rows[:, :, None], columns[:, None, :], fill)


class Part(NamedTuple):
    """A part of each image and whether it is mirrored; every field is (N,). Lengths are shares of the image's."""

    width: Tensor
    height: Tensor
    x: Tensor  # of the part's center, from −1 at the left edge to 1 at the right
    y: Tensor
    flipped: Tensor


def draw_part(
    count: int, area: tuple[float, float], aspect: float, generator: torch.Generator, device: torch.device | str
) -> Part:
    """Draw a part of each of ``count`` images, and a fair coin for its mirror image.

    Args:
        area: of the part, as a share of the image, from … to.
        aspect: by how much it may be wider or taller than the image is.
    """
    uniform = torch.rand((5, count), generator=generator, device=device)
    low, high = area
    size, shape = low + (high - low) * uniform[0], aspect ** (2 * uniform[1] - 1)
    width, height = (size * shape).sqrt().clamp(max=1), (size / shape).sqrt().clamp(max=1)
    x, y = (1 - width) * (2 * uniform[2] - 1), (1 - height) * (2 * uniform[3] - 1)
    return Part(width, height, x, y, uniform[4] < 0.5)


def enlarge(images: Tensor, part: Part) -> Tensor:
    """The part of each image (N, C, H, W), as large as the whole, between pixels by bilinear interpolation; uint8."""
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
    """Map every image (N, C, H, W) by its own `matrix` (N, 6), nearest pixel, black outside.

    A matrix (a, b, c, d, e, f) says where an output pixel comes from: x' = a·x + b·y + c, y' = d·x + e·y + f,
    with x and y at pixel centers. The fixed-point arithmetic is that of Pillow's `Image.transform`, so the
    results are its results, pixel for pixel.
    """
    height, width = images.shape[-2:]
    a, b, c, d, e, f = matrix.double().unbind(1)
    # c and f absorb the half pixel that moves x and y from corners to centers.
    terms = torch.stack([a, b, c + a * 0.5 + b * 0.5, d, e, f + d * 0.5 + e * 0.5])  # (6, N)
    fixed = torch.floor(terms * FIXED_POINT + 0.5).to(torch.int32)
    a, b, c, d, e, f = fixed[:, :, None, None].unbind(0)  # each (N, 1, 1)
    x = torch.arange(width, device=images.device, dtype=torch.int32)
    y = torch.arange(height, device=images.device, dtype=torch.int32)[:, None]
    columns = (a * x + b * y + c) >> 16  # (N, H, W); the shift floors, also below zero
    rows = (d * x + e * y + f) >> 16
    return _sample(images, rows, columns, fill=0)


def _sample(images: Tensor, rows: Tensor, columns: Tensor, fill: int) -> Tensor:
    """Pixel (rows, columns) of each image, `fill` outside; both broadcast to (N, H, W)."""
    channels, height, width = images.shape[1:]
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)  # (N, H, W)
    flat = rows.clamp(0, height - 1) * width + columns.clamp(0, width - 1)
    flat = flat.long().flatten(1)[:, None].expand(-1, channels, -1)  # (N, C, H·W)
    picked = images.flatten(2).gather(2, flat).view(images.shape)
    return picked.masked_fill(~inside[:, None], fill)
