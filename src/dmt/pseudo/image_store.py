"""Pseudo labels of images: one file of tensors, and their provenance."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dmt import files, run_files, schemas
from dmt.data.sets import PseudoLabels, UnlabeledSet
from dmt.pseudo.store import Store
from dmt.types import IGNORE, ProgressCallback, Target


@dataclass(frozen=True)
class ImageStore(Store[Tensor]):
    """The labels of all unlabeled images, and which of them a stage learns from.

    Attributes:
        target: labels and confidence of every unlabeled image, (N,).
        selected: (N,) bool, those that were kept.
    """

    target: Target
    selected: Tensor
    provenance: dict[str, Any]

    @property
    def kept(self) -> int:
        return int(self.selected.sum())

    @property
    def of(self) -> int:
        return len(self.selected)

    @property
    def images(self) -> int:
        return self.kept

    def coverage(self, classes: int) -> dict[str, list[int]]:
        kept = self.target.labels[self.selected]
        return {
            "predicted": torch.bincount(self.target.labels, minlength=classes).tolist(),
            "kept": torch.bincount(kept, minlength=classes).tolist(),
        }

    def open(
        self, unlabeled: UnlabeledSet[Tensor], on_progress: ProgressCallback | None = None, cache: Path | None = None
    ) -> PseudoLabels[Tensor]:
        """Small enough to be in memory always."""
        return PseudoLabels(self.target.labels, self.target.confidence, self.selected)

    def kept_labels(self, positions: Tensor, like: Tensor) -> Tensor:
        return self.target.labels.where(self.selected, IGNORE)[positions].to(like.device)

    def save(self, folder: Path) -> None:
        tensors = {
            "labels": self.target.labels.to(torch.int32),
            "confidence": self.target.confidence,
            "selected": self.selected,
        }
        files.write_tensors(folder / run_files.PSEUDO_IMAGES, tensors)
        # written last: its presence says that the labels are complete
        files.write_json(folder / run_files.PSEUDO, self.provenance)

    @classmethod
    def load(cls, folder: Path) -> "ImageStore":
        tensors = files.read_tensors(folder / run_files.PSEUDO_IMAGES)
        target = Target(tensors["labels"].long(), tensors["confidence"])
        return cls(target, tensors["selected"], files.read_json(folder / run_files.PSEUDO, schemas.PSEUDO))
