"""Labels that wait on disk until it is known which of them are kept."""

import os
import weakref
import zlib
from pathlib import Path
from threading import Lock

import numpy as np


class Spool:
    """Label planes in one file, from any thread: making thousands takes longer than writing them."""

    def __init__(self, path: Path) -> None:
        self._path, self._file, self._lock = path, path.open("w+b"), Lock()
        self._places: dict[int, tuple[int, int]] = {}  # of each image: (offset, length)
        weakref.finalize(self, self._file.close)  # also of labels that are never finished

    def put(self, position: int, labels: np.ndarray) -> None:
        packed = zlib.compress(labels.tobytes(), 1)
        with self._lock:
            self._places[position] = (self._file.seek(0, os.SEEK_END), len(packed))
            self._file.write(packed)

    def get(self, position: int) -> np.ndarray:
        """Flat."""
        offset, length = self._places[position]
        with self._lock:
            self._file.seek(offset)
            packed = self._file.read(length)
        return np.frombuffer(zlib.decompress(packed), np.uint8)

    def remove(self) -> None:
        self._file.close()
        self._path.unlink()
