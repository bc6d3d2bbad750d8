"""A file of features that is filled in several sessions, and knows whether it still holds what was written."""

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dmt import files
from dmt.data import buffers
from dmt.errors import RunError

DTYPE = np.float16

AT_ONCE = 256
"""Rows that are summed up at a time."""


@dataclass
class Vouched:
    """How much of a file is there, encoder by encoder.

    Attributes:
        done: rows that are complete.
        sums: checksums of these rows.
    """

    done: list[int]
    sums: list[int]


@dataclass(frozen=True)
class FeatureFile:
    """Features (N, V, F) float16, those of several encoders side by side.

    Attributes:
        shape: (N, V, F).
        widths: features of each encoder, F in all.
    """

    path: Path
    shape: tuple[int, int, int]
    widths: tuple[int, ...]

    @property
    def _index(self) -> Path:
        return self.path.with_suffix(".json")

    def vouched(self) -> Vouched:
        """What an index vouches for; nothing if there is none, or the file is not as it was."""
        nothing = Vouched([0] * len(self.widths), [0] * len(self.widths))
        if not self._index.exists() or not self.path.exists() or self.path.stat().st_size != self._size:
            return nothing
        try:
            known = files.read_json(self._index)
            done = [int(each) for each in known["done"]]
        except (RunError, KeyError, TypeError, ValueError):
            return nothing
        if len(done) != len(self.widths) or not all(0 <= each <= self.shape[0] for each in done):
            return nothing
        rows = np.memmap(self.path, DTYPE, "r", shape=self.shape)
        sums = [_checksum(self.columns(rows, place)[:end]) for place, end in enumerate(done)]
        return Vouched(done, sums) if known.get("sums", sums) == sums else nothing  # until 0.2 there were no sums

    def reserve(self) -> None:
        """Begin anew."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._index.unlink(missing_ok=True)
        buffers.reserve(self.path, self._size)

    def writable(self) -> np.memmap:
        return np.memmap(self.path, DTYPE, "r+", shape=self.shape)

    def columns(self, rows: np.ndarray, place: int) -> np.ndarray:
        """(N, V, F of this encoder): its part of all rows."""
        offset = sum(self.widths[:place])
        return rows[:, :, offset : offset + self.widths[place]]

    def vouch(self, rows: np.memmap, known: Vouched, place: int, end: int) -> None:
        """Every row before ``end`` is on the disk."""
        rows.flush()
        fresh = self.columns(rows, place)[known.done[place] : end]
        known.sums[place], known.done[place] = _checksum(fresh, known.sums[place]), end
        files.write_json(self._index, {"done": known.done, "sums": known.sums})

    def map(self) -> Tensor:
        """All of it, mapped into memory, not read."""
        return torch.from_numpy(np.memmap(self.path, DTYPE, "c", shape=self.shape))

    @property
    def _size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * DTYPE().itemsize


def _checksum(rows: np.ndarray, before: int = 0) -> int:
    """CRC-32 of these rows, after those that ``before`` is of."""
    for start in range(0, len(rows), AT_ONCE):
        before = zlib.crc32(np.ascontiguousarray(rows[start : start + AT_ONCE]).data, before)
    return before
