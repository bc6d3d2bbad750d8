"""Interface of the stores of pseudo labels, of images or of pixels."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Generic

from torch import Tensor

from dmt import run_files
from dmt.data.sets import Planes, PseudoLabels, UnlabeledSet
from dmt.pseudo.background import Cancelable
from dmt.types import ProgressCallback

DIGEST = "digest"
"""The key of ``pseudo.json`` under which the SHA-256 of the label file is stored."""


def remedy(folder: Path) -> str:
    """Return advice on damaged labels of a stage, for error messages."""
    return f"restore it from a copy, or delete {folder} and repeat the command to make that stage again"


class Store(ABC, Generic[Planes]):
    """The pseudo labels of a stage, their confidence and their provenance. Written once, then read-only.

    Attributes:
        provenance: teacher, round and fraction, as plain values.
    """

    provenance: dict[str, Any]

    @staticmethod
    def exists(folder: Path) -> bool:
        """Return whether a stage has complete labels, of images or of pixels."""
        return (folder / run_files.PSEUDO).exists()

    @property
    @abstractmethod
    def kept(self) -> int:
        """Number of labels that were kept."""

    @property
    @abstractmethod
    def of(self) -> int:
        """Number of labels before the selection."""

    @property
    @abstractmethod
    def images(self) -> int:
        """Number of unlabeled images in one epoch of a stage that learns from the labels."""

    @abstractmethod
    def coverage(self, classes: int) -> dict[str, list[int]]:
        """Return the number of sites per predicted class under ``predicted``, and of those kept under ``kept``."""

    @abstractmethod
    def open(
        self, unlabeled: UnlabeledSet[Planes], on_progress: ProgressCallback | None = None, cache: Path | None = None
    ) -> PseudoLabels[Planes]:
        """Return all labels in memory, in the form that training uses.

        Args:
            unlabeled: the images that have these labels.
            on_progress: is called with (done, total) while files are read.
            cache: a folder for planes too large for memory.
        """

    @abstractmethod
    def kept_labels(self, positions: Tensor, like: Tensor) -> Tensor:
        """Return the labels (n, *S) int64 of some images, IGNORE where not kept, padded to the size of ``like``.

        Args:
            positions: (n,) positions of the images.
            like: (n, C, H, W) these images as a net sees them; the labels are moved to its device.
        """

    @property
    def pending(self) -> Cancelable | None:
        """Work that writes the files that do not exist yet, for a background thread; None if all are written."""
        return None

    def close(self) -> None:
        """Remove files that are no longer needed once the stage is trained."""
        return
