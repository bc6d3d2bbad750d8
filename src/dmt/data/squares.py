"""Images of one size that are read when they are asked for: so many that neither memory nor a disk should hold them."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Read = Callable[[int], np.ndarray]
"""Number of an image -> (C, H, W) uint8."""


class Squares:
    """Stands for a tensor (N, C, H, W) uint8. Whatever is taken out of it is decoded by threads, and not kept.

    Args:
        read: gives one image.
        places: (N,) numbers of the images.
        size: (C, H, W) of every one.
    """

    def __init__(self, read: Read, places: npt.NDArray[np.int64], size: tuple[int, int, int]) -> None:
        self._read, self._places, self._size = read, places, size

    def __len__(self) -> int:
        return len(self._places)

    @property
    def shape(self) -> torch.Size:
        return torch.Size((len(self), *self._size))

    def take(self, positions: Tensor) -> "Squares":
        """The images at these positions, in this order, not read yet."""
        return Squares(self._read, self._places[positions.cpu().numpy()], self._size)

    def to(self, device: torch.device) -> "Squares":
        """As it is: images come to the host, and from there to a device."""
        return self

    def split(self, count: int) -> Iterator[Tensor]:
        """All images in order, so many at a time."""
        for start in range(0, len(self), count):
            yield self[start : start + count]

    def __getitem__(self, positions: Tensor | slice | int) -> Tensor:
        """(n, C, H, W), or one image, on the host."""
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
        return ThreadPoolExecutor(self._workers)  # decoders let go of the interpreter

    @property
    def _workers(self) -> int:
        return min(16, os.cpu_count() or 1)


class ReadAhead:
    """What a step takes, read while the step before it is at work. One thread reads, so ``read`` has no rival.

    Args:
        read: gives it by the number of the step.
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
