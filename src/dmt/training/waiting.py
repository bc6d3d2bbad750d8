"""Where predicted pixels wait until it is known which of them are kept: in memory or on disk."""

import os
import weakref
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from dmt.data.ragged import Ragged
from dmt.training import code_planes
from dmt.training.crew import Crew

AT_ONCE = 1 << 22
"""Pixels that are selected from at a time."""

Locate = Callable[[int, str], Path]  # (position, ending) -> a file of the stage
Draw = Callable[[int, np.ndarray], None]  # (position, kept labels (H, W)) -> its picture is on disk


class Waiting(Protocol):
    """Takes predictions of images in any order, gives them back in order, and gets the kept ones on disk."""

    def put(self, position: int, labels: np.ndarray, codes: np.ndarray) -> None:
        """Labels (H, W) uint8 and codes (H, W) uint16 of one image; both are copied."""

    def parts(self) -> Iterator[tuple[range, Tensor, Tensor]]:
        """All images in order, some at a time: their positions, flat labels (P,) uint8 and packed codes (P,) int16."""

    def keep(self, positions: range, kept: Tensor) -> None:
        """The labels of such a part again, flat, now 255 where they are not kept."""

    def write(self) -> None:
        """See that all files are there."""


class InMemory:
    """Predictions in planes that somebody needs anyway; files are made at the end, without haste.

    One thread makes them. More would be sooner done, but keep the interpreter from the caller, who has work for a GPU.

    Args:
        planes: labels and packed codes of all images, one image after the other.
        path, draw: how files are named and pictures made.
    """

    def __init__(self, planes: tuple[Ragged, Ragged], path: Locate, draw: Draw) -> None:
        self._labels, self._codes = planes
        self._path, self._draw = path, draw

    def put(self, position: int, labels: np.ndarray, codes: np.ndarray) -> None:
        self._labels.put(position, labels)
        self._codes.put(position, code_planes.signed(codes))

    def parts(self) -> Iterator[tuple[range, Tensor, Tensor]]:
        ends = (self._labels.starts + self._labels.heights * self._labels.widths).tolist()
        first, begin = 0, 0
        for last, end in enumerate(ends):
            if end - begin >= AT_ONCE or last + 1 == len(ends):
                yield range(first, last + 1), self._labels.pixels[begin:end], self._codes.pixels[begin:end]
                first, begin = last + 1, end

    def keep(self, positions: range, kept: Tensor) -> None:
        begin = int(self._labels.starts[positions.start])
        self._labels.pixels[begin : begin + len(kept)] = kept

    def write(self) -> None:
        for position in range(len(self._labels)):
            codes = code_planes.unsigned(self._codes.image(position).numpy())
            self._path(position, ".code").write_bytes(code_planes.pack(codes))
            self._draw(position, self._labels.image(position).numpy())


class OnDisk:
    """Predictions in files: what is in memory does not grow with the number of images.

    Labels lie in one file: making thousands takes longer than writing them.

    Args:
        labels: that file.
        path, draw: how the others are named and pictures made.
    """

    def __init__(self, labels: Path, path: Locate, draw: Draw) -> None:
        self._room, self._path, self._draw = labels, path, draw
        self._file, self._lock = labels.open("w+b"), Lock()
        self._places: dict[int, tuple[int, int, tuple[int, int]]] = {}  # of each image: offset, length, size
        self._crew = Crew()
        weakref.finalize(self, self._file.close)  # also of labels that are never finished

    def put(self, position: int, labels: np.ndarray, codes: np.ndarray) -> None:
        self._crew.submit(partial(self._put, position, labels.copy(), codes.copy()))

    def _put(self, position: int, labels: np.ndarray, codes: np.ndarray) -> None:
        packed = zlib.compress(labels.tobytes(), 1)
        with self._lock:
            self._places[position] = (self._file.seek(0, os.SEEK_END), len(packed), (labels.shape[0], labels.shape[1]))
            self._file.write(packed)
        self._path(position, ".code").write_bytes(code_planes.pack(codes))

    def parts(self) -> Iterator[tuple[range, Tensor, Tensor]]:
        self._crew.drain()
        for position, (labels, codes) in enumerate(self._crew.ahead(self._get, range(len(self._places)))):
            yield range(position, position + 1), labels, codes

    def _get(self, position: int) -> tuple[Tensor, Tensor]:
        offset, length, size = self._places[position]
        with self._lock:
            self._file.seek(offset)
            packed = self._file.read(length)
        codes = code_planes.unpack(self._path(position, ".code").read_bytes(), size)
        labels = torch.frombuffer(bytearray(zlib.decompress(packed)), dtype=torch.uint8)
        return labels, torch.from_numpy(code_planes.signed(codes)).flatten()

    def keep(self, positions: range, kept: Tensor) -> None:
        for position in positions:  # one
            self._crew.submit(partial(self._draw, position, kept.view(self._places[position][2]).numpy()))

    def write(self) -> None:
        self._crew.close()
        self._file.close()
        self._room.unlink()
