"""Images of different sizes in one flat buffer, so that a step can gather crops from all of them at once."""

import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dmt.data import buffers
from dmt.types import ProgressCallback


@dataclass(frozen=True)
class Ragged:
    """Images or planes of different sizes, stored one after the other.

    Pixel (row, column) of image i is ``pixels[starts[i] + row * widths[i] + column]``. A subset of the images shares
    the buffer.

    Attributes:
        pixels: (P, C) uint8 for color images, (P,) for masks and other planes.
        starts, heights, widths: (N,) int64.
        digests: a hash of the shape and content of each image.
    """

    pixels: Tensor
    starts: Tensor
    heights: Tensor
    widths: Tensor
    digests: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, positions: Tensor) -> "Ragged":
        """Return the images at these positions, in this order; pixels are shared, not copied."""
        digests = tuple(self.digests[position] for position in positions.tolist())
        return Ragged(self.pixels, self.starts[positions], self.heights[positions], self.widths[positions], digests)

    def image(self, position: int) -> Tensor:
        """Return one image, (H, W) or (H, W, C), as a view of the buffer."""
        start, height, width = (int(each[position]) for each in (self.starts, self.heights, self.widths))
        return self.pixels[start : start + height * width].view(height, width, *self.pixels.shape[1:])

    def put(self, position: int, plane: np.ndarray) -> None:
        """Write one image to its place in the buffer."""
        place = self.image(position)
        if plane.shape != tuple(place.shape):
            raise ValueError(f"image {position} has {plane.shape[:2]}, not {tuple(place.shape[:2])} pixels")
        place.numpy()[:] = plane

    def packed(self) -> "Ragged":
        """Return the same images in a buffer that holds no others; this object itself if its buffer does already."""
        counts = self.heights * self.widths
        if int(counts.sum()) == len(self.pixels) and bool((self.starts.diff() == counts[:-1]).all()):
            return self
        parts = [self.image(position).flatten(0, 1) for position in range(len(self))]
        pixels = torch.cat(parts) if parts else self.pixels[:0]
        return Ragged(pixels, counts.cumsum(0) - counts, self.heights, self.widths, self.digests)

    def to(self, device: torch.device) -> "Ragged":
        """Copy to a device, without images of the buffer that are not part of this subset."""
        here = self.packed()
        pixels, starts, heights, widths = (
            each.to(device) for each in (here.pixels, here.starts, here.heights, here.widths)
        )
        return Ragged(pixels, starts, heights, widths, here.digests)

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """The (height, width) of every image."""
        return list(zip(self.heights.tolist(), self.widths.tolist(), strict=True))


def fill(
    sizes: Sequence[tuple[int, int]],
    read: Callable[[int], np.ndarray],
    channels: int | None = 3,
    dtype: torch.dtype = torch.uint8,
    on_progress: ProgressCallback | None = None,
    file: Path | None = None,
) -> Ragged:
    """Read images in parallel, directly into one buffer.

    Args:
        sizes: (height, width) of every image, as read from the file headers.
        read: maps a position to an image (H, W, C) or, if ``channels`` is None, to a plane (H, W).
        channels: number of channels; None for masks and other planes.
        dtype: of the buffer.
        on_progress: called with the number of images read so far and the total.
        file: backs the buffer if it is too large for memory.
    """
    empty = blank(sizes, channels, dtype, file)

    def place(position: int) -> str:
        plane = read(position)
        empty.put(position, plane)
        return hashlib.sha256(f"{plane.shape}".encode() + plane.tobytes()).hexdigest()[:32]

    digests = []
    with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:  # decoders release the GIL
        for done, digest in enumerate(pool.map(place, range(len(sizes))), start=1):
            digests.append(digest)
            if on_progress is not None:
                on_progress(done, len(sizes))
    return replace(empty, digests=tuple(digests))


def blank(
    sizes: Sequence[tuple[int, int]],
    channels: int | None,
    dtype: torch.dtype,
    file: Path | None = None,
) -> Ragged:
    """Allocate an uninitialized buffer, to be filled by `Ragged.put` in any order and from any thread.

    The digests stay empty.

    Args:
        sizes: (height, width) of every image.
        channels: number of channels; None for masks and other planes.
        dtype: of the buffer.
        file: backs the buffer if it is too large for memory.
    """
    heights, widths = (torch.tensor([size[axis] for size in sizes], dtype=torch.int64) for axis in (0, 1))
    counts = heights * widths
    shape = (int(counts.sum()),) if channels is None else (int(counts.sum()), channels)
    return Ragged(buffers.make(shape, dtype, file), counts.cumsum(0) - counts, heights, widths, ("",) * len(sizes))


def stack(planes: Sequence[np.ndarray]) -> Ragged:
    """Copy arrays that are already in memory into one buffer."""
    channels = planes[0].shape[2] if planes and planes[0].ndim == 3 else None
    dtype = torch.from_numpy(planes[0]).dtype if planes else torch.uint8
    return fill([plane.shape[:2] for plane in planes], planes.__getitem__, channels, dtype)
