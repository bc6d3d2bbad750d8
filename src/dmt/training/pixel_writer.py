"""Writes pixel pseudo labels: takes predictions in any order, and keeps the surest."""

import colorsys
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from dmt import files
from dmt.core import selection, streams
from dmt.core.ranks import ClassRanks, Selector
from dmt.data.ragged import Ragged
from dmt.training import code_planes
from dmt.training.pixel_store import UNSELECTED, PixelStore, name_of
from dmt.training.waiting import InMemory, OnDisk, Waiting


class PixelWriter:
    """Takes predictions in any order, selects at the end.

    Their files lie in a folder of their own, which a crash leaves behind and the next attempt removes.

    Attributes:
        ranks: counts all predictions by class and code.

    Args:
        folder: of the stage that will learn from the labels.
        ids: of all images, in the order that decides between equals.
        palette: 256 RGB colors, 768 numbers; by default, colors that differ.
        planes: room for what `PixelStore.planes` would read; predictions wait there, and nothing is read twice.
            Without it they wait on disk.
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
        self.ranks = ClassRanks(classes)
        self._selected: float | None = None
        self._room = folder / "pseudo-unfinished"
        for left in (self._room, folder / "pseudo"):
            if left.exists():
                shutil.rmtree(left)
        self._room.mkdir(parents=True)
        self._waiting: Waiting = (
            OnDisk(self._room / "labels", self._path, self._draw)
            if planes is None
            else InMemory(planes, self._path, self._draw)
        )

    def add(self, position: int, labels: np.ndarray, codes: np.ndarray, counted: bool = False) -> None:
        """Take the prediction of one image.

        Args:
            position: of the image.
            labels: (H, W) uint8; copied, as are the codes.
            codes: (H, W) uint16.
            counted: whether ``ranks`` knows it already; who predicts many images at once also counts them faster.
        """
        if labels.dtype != np.uint8 or codes.dtype != np.uint16 or labels.shape != codes.shape or labels.ndim != 2:
            raise ValueError(f"image {position}: need (H, W) uint8 labels and uint16 codes of the same size")
        if position in self._sizes or not 0 <= position < len(self._names):
            raise ValueError(f"image {position} of {len(self._names)} is there already, or is none of them")
        self._sizes[position] = (labels.shape[0], labels.shape[1])
        if not counted:
            if labels.size and labels.max() >= self.classes:
                raise ValueError(f"image {position} has label {labels.max()}, but there are {self.classes} classes")
            self.ranks.add(*(torch.from_numpy(np.ascontiguousarray(each)) for each in (labels, codes)))
        self._waiting.put(position, labels, codes)

    def finish(self, fraction: float, provenance: dict[str, Any], noise: float = 0.0, seed: int = 0) -> None:
        """Select, and complete the files."""
        self.select(fraction, noise, seed)
        self.write(provenance)

    def select(self, fraction: float, noise: float = 0.0, seed: int = 0, device: torch.device | str = "cpu") -> None:
        """Keep the top ``fraction`` of each class over all images. Planes are ready then, files are not.

        Args:
            fraction: α, the share of each predicted class to keep.
            noise: for stress tests: each kept pixel becomes another class, drawn evenly, with this probability,
                independently. Coverage counts what was predicted.
            seed: of the stage that will learn from them; only the noise depends on it.
            device: compares.
        """
        if len(self._sizes) < len(self._names):
            raise ValueError(f"{len(self._names) - len(self._sizes)} images have no prediction yet")
        if int(self.ranks.predicted.sum()) != sum(height * width for height, width in self._sizes.values()):
            raise ValueError("pixels were counted twice, or not at all")
        selector = Selector(self.ranks.cutoffs(fraction), device)
        for positions, labels, codes in self._waiting.parts():
            keep = selector(labels.to(device), codes.to(device)).to(labels.device)
            if noise:
                labels = self._falsify(positions, labels, noise, seed)
            self._waiting.keep(positions, labels.where(keep, UNSELECTED))
        self._selected = fraction

    def write(self, provenance: dict[str, Any]) -> None:
        """Complete the files of what was selected. A thread of its own may do this.

        Args:
            provenance: who labeled, in which round; plain values, stored beside the labels.
        """
        self._waiting.write()
        summary = self.summary() | {"bytes": sum(entry.stat().st_size for entry in os.scandir(self._room))}
        self._room.rename(self.folder / "pseudo")
        files.write_json(self.folder / "pseudo.json", provenance | summary)

    def _draw(self, position: int, kept: np.ndarray) -> None:
        image = Image.fromarray(kept)
        image.putpalette(self._palette)  # gray becomes indexed color
        image.save(self._path(position, ".png"), compress_level=1 if kept.size >= code_planes.SMALL else 9)

    def _falsify(self, positions: range, labels: Tensor, noise: float, seed: int) -> Tensor:
        """Flat labels of these images, some of them changed; each image has its own luck."""
        counts = [self._sizes[position][0] * self._sizes[position][1] for position in positions]
        changed = []
        for position, plain in zip(positions, torch.split(labels, counts), strict=True):
            rng = streams.stream(seed, "pseudo noise", position)
            hit = rng.random(len(plain)) < noise
            other = (plain.numpy() + rng.integers(1, self.classes, len(plain))) % self.classes
            changed.append(torch.from_numpy(np.where(hit, other, plain.numpy()).astype(np.uint8)))
        return torch.cat(changed)

    def _path(self, position: int, ending: str) -> Path:
        return self._room / f"{self._names[position]}{ending}"

    def summary(self) -> dict[str, Any]:
        """Of what was selected."""
        assert self._selected is not None
        predicted = self.ranks.predicted.tolist()
        kept = [selection.quota(self._selected, count) for count in predicted]
        return {
            "coverage": {"predicted": predicted, "kept": kept},
            "images": len(self._names),
            "kept": sum(kept),
            "of": sum(predicted),
        }


def _colors() -> list[int]:
    """Black, then hues far apart; unselected is light gray."""
    hues = [colorsys.hsv_to_rgb(label * 0.618 % 1, 0.85, (0.9, 0.65)[label % 2]) for label in range(1, 255)]
    return [0, 0, 0, *(round(255 * value) for color in hues for value in color), 224, 224, 224]
