"""Random windows of images of any size: scale, crop, pad and mirror as one gather, straight from a `Ragged` buffer.

No resized image is ever made: every cell of a window looks up where it comes from. Geometry is separable, so the
tables are small, (N, h) for rows and (N, w) for columns, and all planes of a sample share them. Shapes never depend
on values and nothing is read back from the device: all of it can be captured in a CUDA graph.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from dmt.data.ragged import Ragged
from dmt.errors import ConfigError


class WindowDraws(NamedTuple):
    """What becomes of each sample; every field is (N,)."""

    scale: Tensor  # float32, size of the resized image relative to the image
    y: Tensor  # float32 in [0, 1), where the window lies in the room that it has
    x: Tensor
    flipped: Tensor  # bool


@dataclass(frozen=True)
class Window:
    """What training sees of an image: the image resized at random, a random crop of it, mirrored half of the time.

    Attributes:
        height, width: of the crop. A resized image that is smaller is padded at the bottom and at the right.
        scale: range of the resizing, the same for both sides of an image.
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
        # The coin is drawn even when unused: switching flips off leaves every later draw of the stream in place.
        scale, y, x, coin = torch.rand(4, count, generator=generator, device=device)
        low, high = self.scale
        return WindowDraws(low + (high - low) * scale, y, x, (coin < 0.5) & self.flip)


class Axis(NamedTuple):
    """Where the cells along one side of each window come from; every field is (N, h) or (N, w).

    ``low``, ``high`` and ``nearest`` lie inside the image everywhere, also where ``inside`` is false.
    """

    low: Tensor  # int64, the pixel before the cell's center
    high: Tensor  # int64, the pixel after it
    blend: Tensor  # float32 in [0, 1], how far the center is from low to high
    nearest: Tensor  # int64, the pixel that the center falls into
    inside: Tensor  # bool, false in padding


class Grid(NamedTuple):
    """Where the cells of each window come from."""

    rows: Axis
    columns: Axis

    @property
    def inside(self) -> Tensor:
        """(N, h, w) bool, false in padding."""
        return self.rows.inside[:, :, None] & self.columns.inside[:, None, :]


def place(window: Window, draws: WindowDraws, heights: Tensor, widths: Tensor) -> Grid:
    """The windows that were drawn, on images of these sizes, each (N,) int64."""
    upright = torch.zeros_like(draws.flipped)
    return Grid(
        rows=_axis(window.height, heights, draws.scale, draws.y, upright),
        columns=_axis(window.width, widths, draws.scale, draws.x, draws.flipped),
    )


def _axis(size: int, lengths: Tensor, scale: Tensor, place: Tensor, mirrored: Tensor) -> Axis:
    # doubles keep the products exact: a place below 1 can never round up to a place that does not exist
    resized = (scale.double() * lengths).long().clamp(min=1)  # (N,)
    offset = (place.double() * ((resized - size).clamp(min=0) + 1)).long()
    cells = torch.arange(size, device=lengths.device)
    # The crop comes first, so the mirror reverses the window rather than the image under it.
    cells = torch.where(mirrored[:, None], size - 1 - cells, cells) + offset[:, None]  # (N, size), of resized image
    # float32 in the very order of torch's interpolate, whose indices at exact ties are those of its rounding
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
    """Windows of the color images at ``positions`` (N,): (N, C, h, w) float32 in [0, 1], black in padding.

    Bilinear as ``interpolate(mode="bilinear", align_corners=False, antialias=False)``. Values stay as interpolated:
    rounding them to 8 bits, as resizing a stored image would, costs precision and gains nothing here. The result
    lies in memory as channels_last.
    """
    rows, columns = grid
    blend = columns.blend[:, None, :, None]

    def line(row: Tensor) -> Tensor:
        left = _pick(source, positions, row, columns.low).float()
        return left.lerp_(_pick(source, positions, row, columns.high).float(), blend)

    mixed = line(rows.low).lerp_(line(rows.high), rows.blend[:, :, None, None])  # (N, h, w, C)
    return mixed.div_(255).masked_fill_(~grid.inside[..., None], 0).permute(0, 3, 1, 2)


def plane(source: Ragged, positions: Tensor, grid: Grid, fill: int) -> Tensor:
    """Windows of the planes at ``positions`` (N,): (N, h, w) of the planes' type, ``fill`` in padding.

    Nearest as ``interpolate(mode="nearest-exact")``. The older ``"nearest"`` measures from the corners of pixels
    instead of their centers: its labels lie up to half a pixel beside the bilinear image.
    """
    picked = _pick(source, positions, grid.rows.nearest, grid.columns.nearest)
    return picked.masked_fill_(~grid.inside, fill)


def _pick(source: Ragged, positions: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Pixel (row, column) of each image, for rows (N, h) and columns (N, w): (N, h, w) or (N, h, w, C)."""
    starts, widths = source.starts[positions], source.widths[positions]
    lines = starts[:, None] + rows * widths[:, None]  # (N, h); int64, as a buffer may hold more than 2^31 pixels
    flat = lines[:, :, None] + columns[:, None, :]  # (N, h, w)
    return source.pixels.index_select(0, flat.flatten()).view(*flat.shape, *source.pixels.shape[1:])
