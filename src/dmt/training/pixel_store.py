"""Pixel pseudo labels on disk, at most about 2 bytes a pixel. Written once, then read-only.

```
pseudo.json                 provenance and coverage; written last, so it says that the labels are complete
pseudo/000007-<id>.png      indexed colors: the pixel is the class, 255 where it was not selected
pseudo/000007-<id>.code     confidence codes of all pixels: differences, high bytes then low bytes, zlib
```

Predictions stream through: while a net labels, what is in memory does not grow with the number of images. A stage
that learns from the labels needs all of them; one that trains right away has them kept for it on the way.
"""

import colorsys
import lzma
import os
import re
import shutil
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import torch
from PIL import Image

from dmt import files
from dmt.core import selection, streams
from dmt.core.codes import OFFSET
from dmt.core.ranks import ClassRanks, Compared, Selector
from dmt.data import ragged
from dmt.data.ragged import Ragged, Tell
from dmt.errors import RunError
from dmt.training.crew import Crew
from dmt.training.spool import Spool

UNSELECTED = 255
"""The pixel of a PNG that nobody learns from."""

SMALL = 128 * 128
"""Below so many pixels a slower, better compression is worth it: there every PNG's palette weighs much."""


def name_of(position: int, identity: str) -> str:
    """The file name of an image, without ending: its number, then as much of its id as any file system takes."""
    return f"{position:06d}-{re.sub(r'[^A-Za-z0-9._-]', '_', identity)[:60]}"


class PixelWriter:
    """Takes predictions in any order, selects at the end.

    They wait in a folder of their own, which a crash leaves behind and the next attempt removes.

    Args:
        folder: of the stage that will learn from the labels.
        ids: of all images, in the order that decides between equals.
        palette: 256 RGB colors, 768 numbers; by default, colors that differ.
        planes: room for what `PixelStore.planes` would read. Predictions wait there, and nothing is read twice;
            without it they wait on disk.
    """

    def __init__(
        self,
        folder: Path,
        ids: Sequence[str],
        classes: int,
        palette: Sequence[int] | None = None,
        planes: tuple[Ragged, Ragged] | None = None,
    ) -> None:
        if PixelStore.exists(folder):
            raise FileExistsError(f"{folder} has finished pseudo labels")
        if palette is not None and len(palette) != 768:
            raise ValueError(f"a palette has 768 numbers, not {len(palette)}")
        self.folder, self.classes = folder, classes
        self._names = [name_of(position, identity) for position, identity in enumerate(ids)]
        self._palette = _colors() if palette is None else list(palette)
        self._sizes: dict[int, tuple[int, int]] = {}
        self._ranks, self._counting = ClassRanks(classes), Lock()
        self._planes = planes
        self._work = Crew()
        self._room = folder / "pseudo-unfinished"
        for left in (self._room, folder / "pseudo"):
            if left.exists():
                shutil.rmtree(left)
        self._room.mkdir(parents=True)
        self._spool = Spool(self._room / "labels") if planes is None else None

    def add(self, position: int, labels: np.ndarray, codes: np.ndarray) -> None:
        """Take the prediction of one image: labels (H, W) uint8, codes (H, W) uint16. Both are copied."""
        if labels.dtype != np.uint8 or codes.dtype != np.uint16 or labels.shape != codes.shape or labels.ndim != 2:
            raise ValueError(f"image {position}: need (H, W) uint8 labels and uint16 codes of the same size")
        if position in self._sizes or not 0 <= position < len(self._names):
            raise ValueError(f"image {position} of {len(self._names)} is there already, or is none of them")
        self._sizes[position] = (labels.shape[0], labels.shape[1])
        labels, codes = labels.copy(), codes.copy()
        if self._planes is not None:
            for plane, content in zip(self._planes, (labels, _signed(codes)), strict=True):
                plane.put(position, content)
        self._work.submit(partial(self._keep, position, labels, codes))

    def _keep(self, position: int, labels: np.ndarray, codes: np.ndarray) -> None:
        with self._counting:
            self._ranks.add(torch.from_numpy(labels), torch.from_numpy(codes))
        if self._spool is not None:
            self._spool.put(position, labels)
        self._path(position, ".code").write_bytes(_compress(codes))

    def finish(self, fraction: float, provenance: dict[str, Any], noise: float = 0.0, seed: int = 0) -> None:
        """Select the top ``fraction`` of each class over all images, and complete the files.

        Args:
            fraction: α, the share of each predicted class to keep.
            provenance: who labeled, in which round; plain values, stored beside the labels.
            noise: for stress tests: each kept pixel becomes another class, drawn evenly, with this probability,
                independently. Coverage counts what was predicted.
            seed: of the stage that will learn from them; only the noise depends on it.
        """
        self._work.drain()
        if len(self._sizes) < len(self._names):
            raise ValueError(f"{len(self._names) - len(self._sizes)} images have no prediction yet")
        selector = Selector(self._ranks.cutoffs(fraction))

        def compared(position: int) -> tuple[np.ndarray, Compared]:
            labels, codes = self._recall(position)
            return labels, selector.compare(labels, codes)

        def complete(position: int, labels: np.ndarray, keep: np.ndarray) -> None:
            if noise:
                labels = self._falsify(labels, noise, streams.stream(seed, "pseudo noise", position))
            kept = np.where(keep, labels, np.uint8(UNSELECTED))
            if self._planes is not None:
                self._planes[0].put(position, kept)
            self._draw(position, kept)

        # files are read ahead and written behind; only who gets the ties is settled here, in order of images
        for position, (labels, against) in enumerate(self._work.ahead(compared, range(len(self._names)))):
            self._work.submit(partial(complete, position, labels, selector.settle(against)))
        self._work.close()
        if self._spool is not None:
            self._spool.remove()
        self._room.rename(self.folder / "pseudo")
        files.write_json(self.folder / "pseudo.json", provenance | self._summary(fraction))

    def _recall(self, position: int) -> tuple[np.ndarray, np.ndarray]:
        """Labels and codes of an image as they were predicted."""
        if self._planes is not None:
            labels, codes = (plane.image(position).numpy() for plane in self._planes)
            return labels, _unsigned(codes)
        assert self._spool is not None
        size = self._sizes[position]
        return self._spool.get(position).reshape(size), _decompress(self._path(position, ".code").read_bytes(), size)

    def _draw(self, position: int, kept: np.ndarray) -> None:
        image = Image.fromarray(kept)
        image.putpalette(self._palette)  # gray becomes indexed color
        image.save(self._path(position, ".png"), compress_level=1 if kept.size >= SMALL else 9)

    def _falsify(self, labels: np.ndarray, noise: float, rng: np.random.Generator) -> np.ndarray:
        hit = rng.random(labels.shape) < noise
        other = (labels + rng.integers(1, self.classes, labels.shape)) % self.classes
        return np.where(hit, other, labels).astype(np.uint8)

    def _path(self, position: int, ending: str) -> Path:
        return self._room / f"{self._names[position]}{ending}"

    def _summary(self, fraction: float) -> dict[str, Any]:
        predicted = self._ranks.predicted.tolist()
        kept = [selection.quota(fraction, count) for count in predicted]
        return {
            "coverage": {"predicted": predicted, "kept": kept},
            "images": len(self._names),
            "kept": sum(kept),
            "of": sum(predicted),
            "bytes": sum(entry.stat().st_size for entry in os.scandir(self.folder / "pseudo")),
        }


@dataclass(frozen=True)
class PixelStore:
    """Finished pseudo labels of a stage.

    Attributes:
        provenance: teacher, round, fraction; plain values.
        images: how many there are.
        kept, of: pixels with a label, of all pixels.
        bytes: on disk, while the codes are there.
    """

    folder: Path
    provenance: dict[str, Any]
    images: int
    kept: int
    of: int
    bytes: int
    _coverage: dict[str, list[int]]

    @staticmethod
    def exists(folder: Path) -> bool:
        return (folder / "pseudo.json").exists()

    @classmethod
    def load(cls, folder: Path) -> "PixelStore":
        """Reads the summary; planes stay on disk."""
        about = files.read_json(folder / "pseudo.json")
        summary = [about.pop(key) for key in ("images", "kept", "of", "bytes", "coverage")]
        return cls(folder, about, *summary)

    def coverage(self, classes: int) -> dict[str, list[int]]:
        """Per predicted class: how many pixels got that label, and how many of those were kept."""
        return {key: counts[:classes] for key, counts in self._coverage.items()}

    def planes(self, sizes: Sequence[tuple[int, int]], tell: Tell | None = None) -> tuple[Ragged, Ragged]:
        """All images in order: labels, uint8 with 255 where unselected, and packed codes, int16.

        Args:
            sizes: (height, width) of every image.
            tell: hears how many of these 2N planes are read.
        """

        def codes(position: int) -> np.ndarray:
            return _signed(self._codes(position, sizes[position]))

        def told(before: int) -> Tell | None:
            return None if tell is None else lambda done, of: tell(before + done, 2 * of)

        return (
            ragged.fill(sizes, self._labels, None, torch.uint8, told(0)),
            ragged.fill(sizes, codes, None, torch.int16, told(len(sizes))),
        )

    def read(self, position: int) -> tuple[np.ndarray, np.ndarray]:
        """Labels (H, W) uint8, 255 where unselected, and codes (H, W) uint16 of one image."""
        labels = self._labels(position)
        return labels, self._codes(position, (labels.shape[0], labels.shape[1]))

    def labels(self, position: int) -> np.ndarray:
        """Labels (H, W) uint8 of one image, 255 where unselected: all that a finished stage keeps."""
        return self._labels(position)

    def drop_codes(self) -> None:
        """Remove the codes, which a trained stage needs no more. Labels stay, for people to look at."""
        for path in (self.folder / "pseudo").glob("*.code"):
            path.unlink()

    @cached_property
    def _paths(self) -> list[Path]:
        paths = sorted((self.folder / "pseudo").glob("*.png"), key=lambda path: int(path.name.split("-")[0]))
        if len(paths) != self.images:
            raise self._damaged(f"{self.folder / 'pseudo'} has {len(paths)} of {self.images} labels")
        return paths

    def _labels(self, position: int) -> np.ndarray:
        try:
            with Image.open(self._paths[position]) as image:
                return np.array(image)
        except (OSError, SyntaxError) as error:  # Pillow calls a broken PNG either
            raise self._damaged(f"{self._paths[position]} is unreadable ({error})") from error

    def _codes(self, position: int, size: tuple[int, int]) -> np.ndarray:
        path = self._paths[position].with_suffix(".code")
        try:
            return _decompress(path.read_bytes(), size)
        except (OSError, zlib.error, lzma.LZMAError, ValueError) as error:
            raise self._damaged(f"{path} is missing or damaged ({error})") from error

    def _damaged(self, what: str) -> RunError:
        return RunError(f"{what}; delete {self.folder} to make that stage again")


def _signed(codes: np.ndarray) -> np.ndarray:
    """Codes as torch can hold them: uint16 has few functions there."""
    return (codes ^ np.uint16(OFFSET)).view(np.int16)


def _unsigned(codes: np.ndarray) -> np.ndarray:
    return codes.view(np.uint16) ^ np.uint16(OFFSET)


def _compress(codes: np.ndarray) -> bytes:
    """Confidence is smooth, so its steps along both axes (modulo 65,536) are near 0, their high bytes 0 or 255."""
    none = np.uint16(0)
    steps = np.diff(np.diff(codes, axis=0, prepend=none), axis=1, prepend=none)
    content = np.stack([steps >> 8, steps & 255]).astype(np.uint8).tobytes()
    if codes.size < SMALL:
        return lzma.compress(content, lzma.FORMAT_ALONE, preset=0)
    return zlib.compress(content, 1)


def _decompress(content: bytes, size: tuple[int, int]) -> np.ndarray:
    plain = lzma.decompress(content) if size[0] * size[1] < SMALL else zlib.decompress(content)
    high, low = np.frombuffer(plain, np.uint8).reshape(2, *size)
    steps = high.astype(np.uint16) << 8 | low
    return steps.cumsum(1, dtype=np.uint16).cumsum(0, dtype=np.uint16)


def _colors() -> list[int]:
    """Black, then hues far apart; unselected is light gray."""
    hues = [colorsys.hsv_to_rgb(label * 0.618 % 1, 0.85, (0.9, 0.65)[label % 2]) for label in range(1, 255)]
    return [0, 0, 0, *(round(255 * value) for color in hues for value in color), 224, 224, 224]
