"""Images as training sees them. An unlabeled image has no truth: not by discipline, by type."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from dmt.data.ragged import Ragged
from dmt.data.squares import Squares

Planes = TypeVar("Planes", Tensor, Ragged)
"""How the images of a set are held: stacked if they have one size, ragged if they have many."""

Images = TypeVar("Images", Tensor, Ragged, Squares)
"""The same for unlabeled images, of which there may be too many to be held."""

LINES = 4096
"""Names that are hashed at a time."""


@dataclass(frozen=True)
class UnlabeledSet(Generic[Images]):
    """Images without truth.

    Attributes:
        ids: a name for each image, stable between machines.
        images: (N, C, H, W) uint8, or ragged, or read when they are asked for.
    """

    ids: Sequence[str]
    images: Images
    digests: Sequence[str] | None = None  # of each image, if they were taken when it was read

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of every bit."""
        return _digest(self.ids, self.digests or self.images)

    def take(self, positions: Tensor) -> "UnlabeledSet[Images]":
        """The images at these positions, in this order."""
        ids = tuple(self.ids[position] for position in positions.tolist())
        return UnlabeledSet(
            ids, self.images.take(positions) if isinstance(self.images, Squares) else self.images[positions]
        )


@dataclass(frozen=True)
class LabeledSet(Generic[Planes]):
    """Images with truth: ``labels`` is (N,) int64, or one ragged plane an image, 255 where a pixel has no label."""

    ids: tuple[str, ...]
    images: Planes
    labels: Planes

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of every bit."""
        return _digest(self.ids, self.images, self.labels)

    def take(self, positions: Tensor) -> "LabeledSet[Planes]":
        """The samples at these positions, in this order."""
        ids = tuple(self.ids[position] for position in positions.tolist())
        return LabeledSet(ids, self.images[positions], self.labels[positions])

    def without_truth(self) -> UnlabeledSet[Planes]:
        return UnlabeledSet(self.ids, self.images)


@dataclass(frozen=True)
class PseudoLabels(Generic[Planes]):
    """A teacher's labels of all unlabeled images, in memory: what batches take, and what an audit judges.

    Attributes:
        labels: (N,) int64, or one ragged uint8 plane an image, 255 where a pixel was not kept.
        confidence: (N,) float32, or one ragged int16 plane an image, of `dmt.core.codes`.
        selected: (N,) bool, the images that teach: those kept or, of pixels, all.
        soft: (N, C) float32, what the teacher gave every class, where a stage wants that of images.
    """

    labels: Planes
    confidence: Planes
    selected: Tensor
    soft: Tensor | None = None

    def __len__(self) -> int:
        return len(self.selected)


def counts(labels: Tensor | Ragged, classes: int) -> Tensor:
    """(C,) labeled images or pixels of each class."""
    if isinstance(labels, Ragged):
        total = torch.zeros(256, dtype=torch.int64)
        for position in range(len(labels)):
            total += labels.image(position).flatten().bincount(minlength=256)
        return total[:classes]  # without 255, a pixel that has no label
    return labels.bincount(minlength=classes)


def kinds(labels: Tensor | Ragged) -> np.ndarray:
    """(N,) the class of each image, to spread images evenly by; of masks, which have many, all alike."""
    return np.zeros(len(labels), np.int64) if isinstance(labels, Ragged) else labels.numpy()


def fingerprint(images: tuple[LabeledSet[Any], LabeledSet[Any]]) -> str:
    """Of a whole data set, train and test."""
    return " ".join(part.fingerprint for part in images)


def _digest(*parts: Tensor | Ragged | Squares | Sequence[str]) -> str:
    digest = hashlib.sha256()
    for each in parts:
        assert not isinstance(each, Squares), "images that are not held come with digests"
        if not isinstance(each, Tensor):
            _add_lines(digest, each.digests if isinstance(each, Ragged) else each)
            continue
        digest.update(f"{each.dtype}{tuple(each.shape)}".encode())
        # 0-d and empty tensors have bytes too, and reshape makes a view of them where it can
        digest.update(each.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _add_lines(digest: "hashlib._Hash", lines: Sequence[str]) -> None:
    """As one text, of which a part is made at a time."""
    for start in range(0, len(lines), LINES):
        digest.update(("\n" * (start > 0) + "\n".join(lines[start : start + LINES])).encode())
