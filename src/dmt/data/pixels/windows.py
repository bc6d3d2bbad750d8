"""Random windows of images of any size: resize, crop, pad and mirror in one gather from a `Ragged` buffer.

No resized image is ever created: every cell of a window looks up its source pixels. The geometry is separable, so the
lookup tables are small, (N, h) for rows and (N, w) for columns, and all planes of a sample share them. Shapes never
depend on values and nothing is read back from the device, so all of it can be captured in a CUDA graph.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from dmt.data.ragged import Ragged
from dmt.errors import ConfigError


class WindowDraws(NamedTuple):
    """The random draws of each sample's window; every field is (N,)."""

    scale: Tensor  # float32, resize factor
    y: Tensor  # float32 in [0, 1), position of the window between its topmost and its lowest possible one
    x: Tensor
    flipped: Tensor  # bool


@dataclass(frozen=True)
class Window:
    """The geometric augmentation of training: random resizing, a random crop, mirrored with probability 0.5.

    Attributes:
        height, width: of the crop. A resized image that is smaller is padded at the bottom and at the right.
        scale: least and greatest resize factor. Both sides of an image have the same factor.
        flip: whether to mirror.
    """

    height: int
    width: int
    scale: tuple[float, float] = (0.5, 1.5)
    flip: bool = True

    def __post_init__(self) -> None:
        if min(self.height, self.width) < 1:
            raise ConfigError(f"a crop of {self.height} x {self.width} pixels is empty; make both sides 1 or more")
        if not 0 < self.scale[0] <= self.scale[1]:
            raise ConfigError(f"scales from {self.scale[0]} to {self.scale[1]} are no range; use 0 < low <= high")

    def draw(self, count: int, generator: torch.Generator, device: torch.device | str) -> WindowDraws:
        """Draw a window for each of ``count`` images."""
        # The coin is drawn even if unused, so that switching flips off does not change any later draw of the stream.
        scale, y, x, coin = torch.rand(4, count, generator=generator, device=device)
        low, high = self.scale
        return WindowDraws(low + (high - low) * scale, y, x, (coin < 0.5) & self.flip)


class Axis(NamedTuple):
    """The source pixels of each window's rows or columns; every field is (N, h) or (N, w).

    ``low``, ``high`` and ``nearest`` are valid indices everywhere, also where ``inside`` is false.
    """

    low: Tensor  # int64, the pixel before the cell's center
    high: Tensor  # int64, the pixel after it
    blend: Tensor  # float32 in [0, 1], how far the center is from low to high
    nearest: Tensor  # int64, the pixel that the center falls into
    inside: Tensor  # bool, false in padding


class Grid(NamedTuple):
    """The source pixels of each window's cells."""

    rows: Axis
    columns: Axis

    @property
    def inside(self) -> Tensor:
        """Bool (N, h, w), false in padding."""
        return self.rows.inside[:, :, None] & self.columns.inside[:, None, :]


def place(window: Window, draws: WindowDraws, heights: Tensor, widths: Tensor) -> Grid:
    """Compute the source pixels of the drawn windows, for images of these heights and widths, each (N,) int64."""
    upright = torch.zeros_like(draws.flipped)
    return Grid(
        rows=_axis(window.height, heights, draws.scale, draws.y, upright),
        columns=_axis(window.width, widths, draws.scale, draws.x, draws.flipped),
    )


def _axis(size: int, lengths: Tensor, scale: Tensor, place: Tensor, mirrored: Tensor) -> Axis:
    # doubles keep the products exact: a position below 1 can never round up to an offset outside of the image
    resized = (scale.double() * lengths).long().clamp(min=1)  # (N,)
    offset = (place.double() * ((resized - size).clamp(min=0) + 1)).long()
    cells = torch.arange(size, device=lengths.device)
    # The crop comes first: mirroring reverses the window, not the image below it.
    cells = torch.where(mirrored[:, None], size - 1 - cells, cells) + offset[:, None]  # (N, size), in the resized image
    # float32 in the same order of operations as torch's interpolate, so that exact ties are rounded as there
    ratio = (lengths / resized)[:, None]
    last = (lengths - 1)[:, None]
    center = (cells + 0.5) * ratio  # in pixels from the image's edge
    source = (center - 0.5).clamp(min=0)  # in pixels from the first pixel's center
    low = source.long().minimum(last)
    return Axis(
        low=low,
        high=(low + 1).minimum(last),
        blend=(source - low).clamp(0, 1),
        nearest=center.long().minimum(last),
        inside=cells < resized[:, None],
    )


def images(source: Ragged, positions: Tensor, grid: Grid) -> Tensor:
    """Cut windows of the color images at ``positions`` (N,): (N, C, h, w) float32 in [0, 1], black in padding.

    Bilinear as ``interpolate(mode="bilinear", align_corners=False, antialias=False)``. Interpolated values are not
    rounded to 8 bits, as they would be if a resized image were stored: rounding would only lose precision. The memory
    format of the result is channels_last.
    """
    rows, columns = grid
    blend = columns.blend[:, None, :, None]

    def line(row: Tensor) -> Tensor:
        left = _pick(source, positions, row, columns.low).float()
        return left.lerp_(_pick(source, positions, row, columns.high).float(), blend)

    mixed = line(rows.low).lerp_(line(rows.high), rows.blend[:, :, None, None])  # (N, h, w, C)
    return mixed.div_(255).masked_fill_(~grid.inside[..., None], 0).permute(0, 3, 1, 2)


def plane(source: Ragged, positions: Tensor, grid: Grid, fill: int) -> Tensor:
    """Cut windows of the planes at ``positions`` (N,): (N, h, w) of the planes' dtype, ``fill`` in padding.

    Nearest neighbor as ``interpolate(mode="nearest-exact")``. The older mode ``"nearest"`` measures from the corners
    of pixels instead of their centers, which shifts labels by up to half a pixel relative to the bilinear image.
    """
    picked = _pick(source, positions, grid.rows.nearest, grid.columns.nearest)
    return picked.masked_fill_(~grid.inside, fill)


def _pick(source: Ragged, positions: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Gather the pixels at rows (N, h) and columns (N, w) of each image: (N, h, w) or (N, h, w, C)."""
    starts, widths = source.starts[positions], source.widths[positions]
    lines = starts[:, None] + rows * widths[:, None]  # (N, h); int64, as a buffer may hold more than 2^31 pixels
    flat = lines[:, :, None] + columns[:, None, :]  # (N, h, w)
    return source.pixels.index_select(0, flat.flatten()).view(*flat.shape, *source.pixels.shape[1:])
