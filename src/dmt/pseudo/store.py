"""What every store of pseudo labels offers, whether images or pixels got them."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Generic

from torch import Tensor

from dmt import run_files
from dmt.data.sets import Planes, PseudoLabels, UnlabeledSet
from dmt.pseudo.background import Cancelable
from dmt.types import ProgressCallback

DIGEST = "digest"
"""The entry of ``pseudo.json`` that vouches for the labels; beside provenance."""


def remedy(folder: Path) -> str:
    """What to do about damaged labels of a stage."""
    return f"restore it from a copy, or delete {folder} and repeat the command to make that stage again"


class Store(ABC, Generic[Planes]):
    """The pseudo labels of a stage: who labeled, in which round, how sure. Written once, then read-only.

    Attributes:
        provenance: teacher, round, fraction; plain values.
    """

    provenance: dict[str, Any]

    @staticmethod
    def exists(folder: Path) -> bool:
        """Whether a stage has complete labels, of either kind."""
        return (folder / run_files.PSEUDO).exists()

    @property
    @abstractmethod
    def kept(self) -> int:
        """How many labels were kept."""

    @property
    @abstractmethod
    def of(self) -> int:
        """How many there were."""

    @property
    @abstractmethod
    def images(self) -> int:
        """Images that a pass goes over."""

    @abstractmethod
    def coverage(self, classes: int) -> dict[str, list[int]]:
        """Per predicted class: how many sites got that label, and how many of those were kept."""

    @abstractmethod
    def open(
        self, unlabeled: UnlabeledSet[Planes], on_progress: ProgressCallback | None = None, cache: Path | None = None
    ) -> PseudoLabels[Planes]:
        """All labels in memory, as training takes them.

        Args:
            unlabeled: the images that have these labels.
            on_progress: is called while files are read.
            cache: a folder for what is too large for memory.
        """

    @abstractmethod
    def kept_labels(self, positions: Tensor, like: Tensor) -> Tensor:
        """Labels (n, *S) int64 of some images, IGNORE where none was kept, padded to the size of ``like``.

        Args:
            positions: (n,) of the images.
            like: (n, C, H, W) these images, as a net sees them; the labels come to its device.
        """

    @property
    def pending(self) -> Cancelable | None:
        """Writes the files that are not there yet, if any. A thread of its own may do it."""
        return None

    def close(self) -> None:
        """The stage is trained: remove what nobody will read again."""
        return
