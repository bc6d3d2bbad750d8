"""Images of one size that are read on access: too many to be kept in memory or decoded on disk."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Read = Callable[[int], np.ndarray]
"""Maps the number of an image to its pixels, (C, H, W) uint8."""


class Squares:
    """A stand-in for a tensor (N, C, H, W) uint8. Indexing decodes the images in threads and does not cache them.

    Args:
        read: returns one image.
        places: (N,) numbers of the images, as ``read`` takes them.
        size: (C, H, W) of every image.
    """

    def __init__(self, read: Read, places: npt.NDArray[np.int64], size: tuple[int, int, int]) -> None:
        self._read, self._places, self._size = read, places, size

    def __len__(self) -> int:
        return len(self._places)

    @property
    def shape(self) -> torch.Size:
        return torch.Size((len(self), *self._size))

    def take(self, positions: Tensor) -> "Squares":
        """Return the images at these positions, in this order, without reading them."""
        return Squares(self._read, self._places[positions.cpu().numpy()], self._size)

    def to(self, device: torch.device) -> "Squares":
        """Return this object unchanged: images are always read on the host, and moved to a device by the caller."""
        return self

    def split(self, count: int) -> Iterator[Tensor]:
        """Yield all images in order, ``count`` at a time."""
        for start in range(0, len(self), count):
            yield self[start : start + count]

    def __getitem__(self, positions: Tensor | slice | int) -> Tensor:
        """Read images (n, C, H, W), or one image (C, H, W), on the host."""
        if isinstance(positions, int):
            return torch.from_numpy(np.ascontiguousarray(self._read(int(self._places[positions]))))
        numbers = self._places[positions if isinstance(positions, slice) else positions.cpu().numpy()]
        found = np.empty((len(numbers), *self._size), np.uint8)

        def fill(part: slice) -> None:
            for row in range(*part.indices(len(numbers))):
                found[row] = self._read(int(numbers[row]))

        step = -(-len(numbers) // self._workers) or 1
        for _ in self._pool.map(fill, [slice(start, start + step) for start in range(0, len(numbers), step)]):
            pass
        return torch.from_numpy(found)

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._workers)  # decoders release the GIL

    @property
    def _workers(self) -> int:
        return min(16, os.cpu_count() or 1)


class ReadAhead:
    """Reads the images of the next step while the current step runs.

    Only one thread calls ``read``, so it need not be thread-safe.

    Args:
        read: maps the number of a step to its images.
    """

    def __init__(self, read: Callable[[int], Tensor]) -> None:
        self._read = read
        self._pool = ThreadPoolExecutor(1)
        self._under_way: tuple[int, Future[Tensor]] | None = None

    def __call__(self, step: int) -> Tensor:
        number, found = self._under_way or (-1, None)
        if found is None or number != step:
            found = self._pool.submit(self._read, step)
        here = found.result()
        self._under_way = step + 1, self._pool.submit(self._read, step + 1)
        return here
