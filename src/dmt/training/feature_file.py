"""A file of features that can be filled over several sessions, with checksums that detect later changes."""

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
"""Number of rows that a checksum processes at a time."""


@dataclass
class Vouched:
    """The part of a file that is complete, for each encoder.

    Attributes:
        done: number of complete rows.
        sums: checksum of these rows.
    """

    done: list[int]
    sums: list[int]


@dataclass(frozen=True)
class FeatureFile:
    """A file of features (N, V, F) float16, with those of several encoders concatenated along F.

    Attributes:
        shape: (N, V, F).
        widths: number of features of each encoder; they add up to F.
    """

    path: Path
    shape: tuple[int, int, int]
    widths: tuple[int, ...]

    @property
    def _index(self) -> Path:
        return self.path.with_suffix(".json")

    def vouched(self) -> Vouched:
        """Return the part that the index lists as complete; empty without an index, or if the file has changed."""
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
        return Vouched(done, sums) if known.get("sums", sums) == sums else nothing  # no sums up to release 0.2

    def reserve(self) -> None:
        """Create an empty file of the full size and remove the index."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._index.unlink(missing_ok=True)
        buffers.reserve(self.path, self._size)

    def writable(self) -> np.memmap:
        return np.memmap(self.path, DTYPE, "r+", shape=self.shape)

    def columns(self, rows: np.ndarray, place: int) -> np.ndarray:
        """Return a view (N, V, F of this encoder) of the features of one encoder."""
        offset = sum(self.widths[:place])
        return rows[:, :, offset : offset + self.widths[place]]

    def vouch(self, rows: np.memmap, known: Vouched, place: int, end: int) -> None:
        """Flush the file and record in the index that all rows before ``end`` are complete for one encoder."""
        rows.flush()
        fresh = self.columns(rows, place)[known.done[place] : end]
        known.sums[place], known.done[place] = _checksum(fresh, known.sums[place]), end
        files.write_json(self._index, {"done": known.done, "sums": known.sums})

    def map(self) -> Tensor:
        """Return all features, memory-mapped; changes to them are not written to the file."""
        return torch.from_numpy(np.memmap(self.path, DTYPE, "c", shape=self.shape))

    @property
    def _size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * DTYPE().itemsize


def _checksum(rows: np.ndarray, before: int = 0) -> int:
    """Return the CRC-32 of these rows, continuing from ``before``, the checksum of the preceding rows."""
    for start in range(0, len(rows), AT_ONCE):
        before = zlib.crc32(np.ascontiguousarray(rows[start : start + AT_ONCE]).data, before)
    return before
