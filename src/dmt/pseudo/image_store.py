"""Pseudo labels with their provenance: who labeled, in which round, how sure. Written once, then read-only."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dmt import files, run_files
from dmt.types import Target


@dataclass(frozen=True)
class Store:
    """The labels of all unlabeled images, and which of them a stage learns from.

    Attributes:
        target: labels and confidence of every unlabeled image, (N,).
        selected: (N,) bool, those that were kept.
        provenance: teacher, round, fraction; plain values.
    """

    target: Target
    selected: Tensor
    provenance: dict[str, Any]

    @property
    def kept(self) -> int:
        """How many labels were kept."""
        return int(self.selected.sum())

    @property
    def of(self) -> int:
        """How many there were."""
        return len(self.selected)

    @property
    def images(self) -> int:
        """Images that a pass goes over."""
        return self.kept

    def taken(self) -> tuple[Tensor, Target]:
        """Positions of the kept images, and their target."""
        positions = self.selected.nonzero().squeeze(1)
        return positions, Target(self.target.labels[positions], self.target.confidence[positions])

    def coverage(self, classes: int) -> dict[str, list[int]]:
        """Per predicted class: how many images got that label, and how many of those were kept."""
        kept = self.target.labels[self.selected]
        return {
            "predicted": torch.bincount(self.target.labels, minlength=classes).tolist(),
            "kept": torch.bincount(kept, minlength=classes).tolist(),
        }

    def save(self, folder: Path) -> None:
        tensors = {
            "labels": self.target.labels.to(torch.int32),
            "confidence": self.target.confidence,
            "selected": self.selected,
        }
        files.write_tensors(folder / run_files.PSEUDO_IMAGES, tensors)
        # written last: its presence says that the labels are complete
        files.write_json(folder / run_files.PSEUDO, self.provenance)

    @staticmethod
    def exists(folder: Path) -> bool:
        return (folder / run_files.PSEUDO).exists()

    @classmethod
    def load(cls, folder: Path) -> "Store":
        tensors = files.read_tensors(folder / run_files.PSEUDO_IMAGES)
        target = Target(tensors["labels"].long(), tensors["confidence"])
        return cls(target, tensors["selected"], files.read_json(folder / run_files.PSEUDO))
