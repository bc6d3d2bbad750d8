"""Makes pixel pseudo labels: takes predictions in any order, keeps the most confident, and writes their files."""

import colorsys
import io
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from dmt import files, run_files
from dmt.core import codes as coding
from dmt.core import selection, streams
from dmt.core.ranks import ClassRanks, Selector
from dmt.core.trees import Fetched
from dmt.data import buffers, ragged
from dmt.data.pixels import size_groups
from dmt.data.ragged import Ragged
from dmt.pseudo import code_planes
from dmt.pseudo.pixel_store import UNSELECTED, PixelStore, checksum, name_of, plane_file

AT_ONCE = 1 << 22
"""Number of pixels that the selection processes at a time."""


class PixelWriter:
    """Writer of pixel pseudo labels: `take` the predictions of all images, then `select`, then `write`.

    Predictions are held in planes that the learning stage needs anyway. Files are written to a separate folder until
    they are complete; a crash leaves that folder behind and the next attempt removes it.

    Attributes:
        planes: labels uint8 and packed codes int16 of all images, as `PixelStore.planes` would read them.

    Args:
        folder: the folder of the stage that will learn from the labels.
        ids: ids of all images; among pixels of equal confidence, those of earlier images are kept first.
        sizes: (height, width) of all images.
        classes: number of classes.
        palette: 256 RGB colors as 768 numbers; by default, distinct colors.
        cache: a folder for planes too large for memory; their files do not outlive the process.
    """

    def __init__(
        self,
        folder: Path,
        ids: Sequence[str],
        sizes: Sequence[tuple[int, int]],
        classes: int,
        palette: Sequence[int] | None = None,
        cache: Path | None = None,
    ) -> None:
        if PixelStore.exists(folder):
            raise FileExistsError(f"{folder} has finished pseudo labels")
        if palette is not None and len(palette) != 768:
            raise ValueError(f"a palette has 768 numbers, not {len(palette)}")
        self.folder, self.classes = folder, classes
        self._names = [name_of(position, identity) for position, identity in enumerate(ids)]
        self._palette = _colors() if palette is None else list(palette)
        self.planes = (empty_plane(sizes, torch.uint8, cache), empty_plane(sizes, torch.int16, cache))
        self._ranks = ClassRanks(classes)
        self._missing = torch.ones(len(self._names), dtype=torch.bool)
        self._arriving: tuple[Tensor, Fetched] | None = None
        self._summary: dict[str, Any] | None = None
        self._unfinished = folder / run_files.PSEUDO_UNFINISHED
        for left in (self._unfinished, folder / run_files.PSEUDO_PIXELS):
            if left.exists():
                shutil.rmtree(left)
        self._unfinished.mkdir(parents=True)

    def take(self, positions: Tensor, labels: Tensor, codes: Tensor) -> None:
        """Take the predictions of some images, on any device.

        They are copied into the planes only when the next predictions arrive, so that the device can work on the next
        batch while the host handles this one.

        Args:
            positions: (n,) positions of the images.
            labels: (n, H, W), padded at the bottom and right.
            codes: (n, H, W) confidence codes, 0 … 65,535.
        """
        sizes = torch.stack([self.planes[0].heights[positions], self.planes[0].widths[positions]], 1)
        if labels.shape != codes.shape or any(int(sizes[:, axis].max()) > labels.shape[1 + axis] for axis in (0, 1)):
            raise ValueError(f"labels {tuple(labels.shape)} and codes {tuple(codes.shape)} do not cover their images")
        if not bool(self._missing[positions].all()):
            raise ValueError("some of these images were taken before")
        self._missing[positions] = False
        self._ranks.add(labels, codes, size_groups.padding(sizes, labels))
        arriving = (positions, Fetched(labels.to(torch.uint8), coding.pack(codes)))
        self._put()
        self._arriving = arriving

    def _put(self) -> None:
        if self._arriving is None:
            return
        positions, fetched = self._arriving
        for planes, found in zip(self.planes, fetched.arrived(), strict=True):
            for position, plane in zip(positions.tolist(), found, strict=True):
                height, width = int(planes.heights[position]), int(planes.widths[position])
                planes.put(position, plane[:height, :width])
        self._arriving = None

    def select(
        self, fraction: float, noise: float = 0.0, seed: int = 0, device: torch.device | str = "cpu"
    ) -> dict[str, Any]:
        """Keep the top ``fraction`` of each predicted class over all images; unselect all other pixels in the planes.

        Args:
            fraction: α, the share of each predicted class to keep.
            noise: for stress tests, the probability with which each kept pixel independently becomes another class,
                drawn uniformly. The summary counts the original predictions.
            seed: the seed of the stage that will learn from the labels; only the noise depends on it.
            device: the device that does the comparisons.

        Returns:
            The summary of the store, without the entries of its files.
        """
        self._put()
        if bool(self._missing.any()):
            raise ValueError(f"{int(self._missing.sum())} images have no prediction yet")
        labels, codes = (planes.pixels for planes in self.planes)
        predicted = self._ranks.predicted.tolist()
        if sum(predicted) != len(labels):
            raise ValueError(f"some labels are none of the {self.classes} classes")
        selector = Selector(self._ranks.cutoffs(fraction), device)
        for begin in range(0, len(labels), AT_ONCE):
            part = slice(begin, begin + AT_ONCE)
            keep = selector(labels[part].to(device), codes[part].to(device))
            labels[part] = labels[part].where(keep.to(labels.device), UNSELECTED)
        if noise:
            self._corrupt(noise, seed)
        kept = [selection.quota(fraction, count) for count in predicted]
        self._summary = {
            "coverage": {"predicted": predicted, "kept": kept},
            "images": len(self._names),
            "kept": sum(kept),
            "of": sum(predicted),
        }
        return self._summary

    def _corrupt(self, noise: float, seed: int) -> None:
        """Corrupt labels as described in `select`; each image has its own random stream, so order does not matter."""
        for position in range(len(self._names)):
            rng = streams.stream(seed, "pseudo noise", position)
            labels = self.planes[0].image(position).numpy()
            hit = (rng.random(labels.shape) < noise) & (labels != UNSELECTED)
            other = (labels + rng.integers(1, self.classes, labels.shape)) % self.classes
            labels[hit] = other[hit]

    def store(self, provenance: dict[str, Any]) -> PixelStore:
        """Return a store of the selected labels, held in memory; its files are still to be written."""
        assert self._summary is not None, "select first"
        return PixelStore(self.folder, provenance, self._summary, self.planes, partial(self.write, provenance))

    def write(self, provenance: dict[str, Any], canceled: Callable[[], bool] = lambda: False) -> None:
        """Write the files of the selected labels. This may run in a background thread, since it uses no device.

        One thread is enough: more would finish sooner, but compete for the interpreter with the threads that feed a
        GPU.

        Args:
            provenance: teacher and round as plain values, stored with the labels.
            canceled: is called before each image; if it returns true, writing stops and the labels stay incomplete.
        """
        assert self._summary is not None, "select first"
        labels, codes = self.planes
        checksums: dict[str, list[int]] = {"labels": [], "codes": []}
        written = 0
        for position, name in enumerate(self._names):
            if canceled():
                return
            packed = code_planes.pack(code_planes.unsigned(codes.image(position).numpy()))
            drawn = self._draw(labels.image(position).numpy())
            for kind, ending, content in (("codes", "code", packed), ("labels", "png", drawn)):
                (self._unfinished / f"{name}.{ending}").write_bytes(content)
                checksums[kind].append(checksum(content))
                written += len(content)
        summary = self._summary | {"bytes": written, "checksums": checksums}
        self._unfinished.rename(self.folder / run_files.PSEUDO_PIXELS)
        files.write_json(self.folder / run_files.PSEUDO, provenance | summary)

    def _draw(self, kept: np.ndarray) -> bytes:
        """Return the labels as the bytes of a PNG."""
        image = Image.fromarray(kept)
        image.putpalette(self._palette)  # turns the grayscale image into one with indexed colors
        content = io.BytesIO()
        image.save(content, "PNG", compress_level=1 if kept.size >= code_planes.SMALL else 9)
        return content.getvalue()


def empty_plane(sizes: Sequence[tuple[int, int]], dtype: torch.dtype, cache: Path | None) -> Ragged:
    """Allocate one number per pixel; planes too large for memory are backed by a file that ends with the process."""
    file = plane_file(cache, dtype)
    plane = ragged.blank(sizes, None, dtype, file)
    buffers.discard(file)
    return plane


def _colors() -> list[int]:
    """Return a palette: black, then hues far apart, and light gray for unselected pixels."""
    hues = [colorsys.hsv_to_rgb(label * 0.618 % 1, 0.85, (0.9, 0.65)[label % 2]) for label in range(1, 255)]
    return [0, 0, 0, *(round(255 * value) for color in hues for value in color), 224, 224, 224]
