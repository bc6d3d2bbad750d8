"""Pixel pseudo labels on disk, at most about 2 bytes per pixel. Written once, then read-only.

```
pseudo.json                 provenance, coverage, checksums of all files; written last, so it marks them as complete
pseudo/000007-<id>.png      indexed colors: a pixel's value is its class, or 255 if it was not selected
pseudo/000007-<id>.code     confidence codes of all pixels, compressed by `code_planes`
```

A stage that trains right after its labels were made has them in memory. The files are for people to look at, and for
a run that is stopped and resumed.
"""

import io
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from dmt import files, run_files, schemas
from dmt.data import buffers, ragged
from dmt.data.pixels import size_groups
from dmt.data.ragged import Ragged
from dmt.data.sets import PseudoLabels, UnlabeledSet
from dmt.errors import RunError
from dmt.pseudo import code_planes, store
from dmt.pseudo.background import Cancelable
from dmt.pseudo.store import Store
from dmt.types import ProgressCallback

UNSELECTED = 255
"""The value of a PNG pixel that is not learned from."""

SUMMARY = ("images", "kept", "of", "coverage", "bytes", "checksums")
"""Keys of ``pseudo.json`` besides provenance."""

checksum = zlib.crc32
"""Checksum of a file's content, fast enough for thousands of files."""


def name_of(position: int, identity: str) -> str:
    """Return the file name of an image without extension: its number and up to 60 safe characters of its id."""
    return f"{position:06d}-{re.sub(r'[^A-Za-z0-9._-]', '_', identity)[:60]}"


def plane_file(cache: Path | None, dtype: torch.dtype) -> Path | None:
    """Return the file that backs planes too large for memory; the dtype tells labels from codes."""
    return None if cache is None else cache / f"pseudo-{dtype}"


@dataclass(frozen=True)
class PixelStore(Store[Ragged]):
    """Pseudo labels of pixels.

    Attributes:
        folder: the folder of the stage that learns from the labels.
        summary: counts made during selection, under the keys in `SUMMARY`.
        fresh: the planes, if they were just made and need not be read from disk.
        unwritten: writes the files, if they do not exist yet.
    """

    folder: Path
    provenance: dict[str, Any]
    summary: dict[str, Any]
    fresh: tuple[Ragged, Ragged] | None = None
    unwritten: Cancelable | None = None

    @classmethod
    def load(cls, folder: Path) -> "PixelStore":
        """Read the summary; planes stay on disk."""
        about = files.read_json(folder / run_files.PSEUDO, schemas.PSEUDO_OF_PIXELS)
        summary = {key: about.pop(key) for key in SUMMARY if key in about}
        return cls(folder, about, summary)

    @property
    def kept(self) -> int:
        return int(self.summary["kept"])

    @property
    def of(self) -> int:
        return int(self.summary["of"])

    @property
    def images(self) -> int:
        """Number of all unlabeled images: each contributes those of its pixels that were kept."""
        return int(self.summary["images"])

    @property
    def bytes(self) -> int:
        """Bytes on disk, codes included; 0 while the files are being written."""
        return int(self.summary.get("bytes", 0))

    def coverage(self, classes: int) -> dict[str, list[int]]:
        return {key: counts[:classes] for key, counts in self.summary["coverage"].items()}

    def open(
        self, unlabeled: UnlabeledSet[Ragged], on_progress: ProgressCallback | None = None, cache: Path | None = None
    ) -> PseudoLabels[Ragged]:
        planes = self.fresh or self.planes(unlabeled.images.sizes, on_progress, cache)
        return PseudoLabels(*planes, selected=torch.ones(len(unlabeled), dtype=torch.bool))

    def kept_labels(self, positions: Tensor, like: Tensor) -> Tensor:
        height, width = like.shape[-2:]
        padded = np.full((len(positions), height, width), UNSELECTED, np.uint8)
        for row, position in zip(padded, positions.tolist(), strict=True):
            plane = self.labels(position)
            row[: plane.shape[0], : plane.shape[1]] = plane
        return size_groups.truth(torch.from_numpy(padded).to(like.device))

    @property
    def pending(self) -> Cancelable | None:
        return self.unwritten

    def close(self) -> None:
        """Remove the confidence codes. The labels stay, for people to look at."""
        self.drop_codes()

    def planes(
        self, sizes: Sequence[tuple[int, int]], tell: ProgressCallback | None = None, cache: Path | None = None
    ) -> tuple[Ragged, Ragged]:
        """Read the planes of all images in order: labels uint8, 255 where unselected, and packed codes int16.

        Args:
            sizes: (height, width) of every image.
            tell: is called with the number of planes read so far, of 2N.
            cache: a folder for planes too large for memory, as in `PixelWriter`.
        """

        def codes(position: int) -> np.ndarray:
            return code_planes.signed(self._codes(position, sizes[position]))

        def told(before: int) -> ProgressCallback | None:
            return None if tell is None else lambda done, of: tell(before + done, 2 * of)

        def read(plane: Callable[[int], np.ndarray], dtype: torch.dtype, before: int) -> Ragged:
            file = plane_file(cache, dtype)
            try:
                return ragged.fill(sizes, plane, None, dtype, told(before), file)
            finally:
                buffers.discard(file)

        return read(self.labels, torch.uint8, 0), read(codes, torch.int16, len(sizes))

    def read(self, position: int) -> tuple[np.ndarray, np.ndarray]:
        """Read the labels (H, W) uint8, 255 where unselected, and the codes (H, W) uint16 of one image."""
        labels = self.labels(position)
        return labels, self._codes(position, (labels.shape[0], labels.shape[1]))

    def labels(self, position: int) -> np.ndarray:
        """Read the labels (H, W) uint8 of one image, 255 where unselected; a finished stage keeps only these."""
        path = self._paths[position]
        try:
            with Image.open(io.BytesIO(_content(path, self._checksum("labels", position)))) as image:
                labels = np.array(image)
        except (OSError, SyntaxError, ValueError) as error:  # Pillow raises any of these for a broken PNG
            raise self._damaged(f"{path} is missing or damaged ({error})") from error
        if int(labels.max(where=labels != UNSELECTED, initial=0)) >= len(self.summary["coverage"]["kept"]):
            raise self._damaged(f"{path} has labels that are no classes")
        return labels

    def drop_codes(self) -> None:
        """Remove the codes, which a trained stage no longer needs."""
        for path in (self.folder / run_files.PSEUDO_PIXELS).glob("*.code"):
            path.unlink()

    @cached_property
    def _paths(self) -> list[Path]:
        drawn = (self.folder / run_files.PSEUDO_PIXELS).glob("*.png")
        numbered = {int(first): path for path in drawn if (first := path.name.split("-")[0]).isdecimal()}
        paths = [numbered[position] for position in sorted(numbered)]
        if len(paths) != self.images:
            raise self._damaged(f"{self.folder / run_files.PSEUDO_PIXELS} has {len(paths)} of {self.images} labels")
        return paths

    def _codes(self, position: int, size: tuple[int, int]) -> np.ndarray:
        path = self._paths[position].with_suffix(".code")
        try:
            return code_planes.unpack(_content(path, self._checksum("codes", position)), size)
        except (OSError, *code_planes.DAMAGE) as error:
            raise self._damaged(f"{path} is missing or damaged ({error})") from error

    def _checksum(self, kind: str, position: int) -> int | None:
        """Return the recorded checksum of one image's file, or None in runs of version 0.2 and older."""
        known: dict[str, list[int]] | None = self.summary.get("checksums")
        return None if known is None else known[kind][position]

    def _damaged(self, what: str) -> RunError:
        return RunError(f"{what}; {store.remedy(self.folder)}")


def _content(path: Path, known: int | None) -> bytes:
    """Read a file and verify its checksum, if one is known.

    Raises:
        ValueError: if the checksum differs.
    """
    content = path.read_bytes()
    if known not in (None, checksum(content)):
        raise ValueError("it is not what was written there")
    return content
