"""Labeled and unlabeled sets as training sees them. The type of an unlabeled set has no field for ground truth."""

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
"""How the images of a set are stored: stacked if they have one size, ragged if they have several."""

Images = TypeVar("Images", Tensor, Ragged, Squares)
"""How the images of an unlabeled set are stored: the same, or read on access if they are too many for memory."""

LINES = 4096
"""Number of names that are hashed at a time."""


@dataclass(frozen=True)
class UnlabeledSet(Generic[Images]):
    """Images without ground truth.

    Attributes:
        ids: a name for each image, the same on every machine.
        images: (N, C, H, W) uint8, ragged, or read on access.
    """

    ids: Sequence[str]
    images: Images
    digests: Sequence[str] | None = None  # hash of each image, if computed when it was read

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all names and images."""
        return _digest(self.ids, self.digests or self.images)

    def take(self, positions: Tensor) -> "UnlabeledSet[Images]":
        """Return the images at these positions, in this order."""
        ids = tuple(self.ids[position] for position in positions.tolist())
        return UnlabeledSet(
            ids, self.images.take(positions) if isinstance(self.images, Squares) else self.images[positions]
        )


@dataclass(frozen=True)
class LabeledSet(Generic[Planes]):
    """Images with ground truth.

    Attributes:
        ids: a name for each image, the same on every machine.
        images: (N, C, H, W) uint8, or ragged.
        labels: (N,) int64, or one ragged uint8 plane per image, 255 where a pixel has no label.
    """

    ids: tuple[str, ...]
    images: Planes
    labels: Planes

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all names, images and labels."""
        return _digest(self.ids, self.images, self.labels)

    def take(self, positions: Tensor) -> "LabeledSet[Planes]":
        """Return the samples at these positions, in this order."""
        ids = tuple(self.ids[position] for position in positions.tolist())
        return LabeledSet(ids, self.images[positions], self.labels[positions])

    def without_truth(self) -> UnlabeledSet[Planes]:
        return UnlabeledSet(self.ids, self.images)


@dataclass(frozen=True)
class PseudoLabels(Generic[Planes]):
    """A teacher's labels of all unlabeled images, in memory. Batches are made from them, and an audit judges them.

    Attributes:
        labels: (N,) int64, or one ragged uint8 plane per image, 255 where a pixel was not kept.
        confidence: (N,) float32, or one ragged int16 plane of packed `dmt.core.codes` per image.
        selected: (N,) bool, the images used in training: in classification the kept ones, in segmentation all.
        soft: (N, C) float32, the teacher's probability of every class, if a classification stage needs it.
    """

    labels: Planes
    confidence: Planes
    selected: Tensor
    soft: Tensor | None = None

    def __len__(self) -> int:
        return len(self.selected)


def counts(labels: Tensor | Ragged, classes: int) -> Tensor:
    """Count the labeled images or pixels of each class, (C,) int64."""
    if isinstance(labels, Ragged):
        total = torch.zeros(256, dtype=torch.int64)
        for position in range(len(labels)):
            total += labels.image(position).flatten().bincount(minlength=256)
        return total[:classes]  # without 255, which stands for pixels that have no label
    return labels.bincount(minlength=classes)


def kinds(labels: Tensor | Ragged) -> np.ndarray:
    """Return the class of each image, (N,), for stratified splits; all 0 for masks, which show several classes."""
    return np.zeros(len(labels), np.int64) if isinstance(labels, Ragged) else labels.numpy()


def fingerprint(images: tuple[LabeledSet[Any], LabeledSet[Any]]) -> str:
    """Return a hash of a whole data set (train, test)."""
    return " ".join(part.fingerprint for part in images)


def _digest(*parts: Tensor | Ragged | Squares | Sequence[str]) -> str:
    digest = hashlib.sha256()
    for each in parts:
        assert not isinstance(each, Squares), "images that are not held come with digests"
        if not isinstance(each, Tensor):
            _add_lines(digest, each.digests if isinstance(each, Ragged) else each)
            continue
        digest.update(f"{each.dtype}{tuple(each.shape)}".encode())
        # reshape first: 0-d tensors cannot be viewed as bytes directly
        digest.update(each.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _add_lines(digest: "hashlib._Hash", lines: Sequence[str]) -> None:
    """Hash lines as if joined by newlines, without ever building the whole text."""
    for start in range(0, len(lines), LINES):
        digest.update(("\n" * (start > 0) + "\n".join(lines[start : start + LINES])).encode())
