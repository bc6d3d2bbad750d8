"""Pseudo labels of images, stored as one tensor file and their provenance."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dmt import files, run_files, schemas
from dmt.core import shapes
from dmt.data.sets import PseudoLabels, UnlabeledSet
from dmt.errors import RunError
from dmt.pseudo import store
from dmt.pseudo.store import DIGEST, Store
from dmt.types import IGNORE, ProgressCallback, Target


@dataclass(frozen=True)
class ImageStore(Store[Tensor]):
    """Pseudo labels of all unlabeled images, and a mask of those that a stage learns from.

    Attributes:
        target: labels and confidence of every unlabeled image, (N,) each.
        selected: (N,) bool, true where the label was kept.
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
        """Return the labels, which are small enough to be always in memory."""
        return PseudoLabels(self.target.labels, self.target.confidence, self.selected, self.target.soft)

    def kept_labels(self, positions: Tensor, like: Tensor) -> Tensor:
        return self.target.labels.where(self.selected, IGNORE)[positions].to(like.device)

    def save(self, folder: Path) -> None:
        tensors = {
            "labels": self.target.labels.to(torch.int32),
            "confidence": self.target.confidence,
            "selected": self.selected,
        }
        if self.target.soft is not None:
            tensors["soft"] = self.target.soft
        digest = files.write_tensors(folder / run_files.PSEUDO_IMAGES, tensors)
        # written last: its presence marks the labels as complete
        files.write_json(folder / run_files.PSEUDO, self.provenance | {DIGEST: digest})

    @classmethod
    def load(cls, folder: Path) -> "ImageStore":
        path, remedy = folder / run_files.PSEUDO_IMAGES, store.remedy(folder)
        about = files.read_json(folder / run_files.PSEUDO, schemas.PSEUDO)
        if DIGEST in about:  # missing in runs of version 0.2 and older
            files.require_digest(path, about.pop(DIGEST), remedy)
        tensors = files.read_tensors(path)
        try:
            labels, confidence, selected = (tensors[name] for name in ("labels", "confidence", "selected"))
        except KeyError as error:
            raise RunError(f"{path} is damaged: it has no {error}; {remedy}") from error
        return cls(Target(labels.long(), confidence, tensors.get("soft")), selected, about)

    def require_possible(self, folder: Path, images: int, classes: int) -> None:
        """Refuse labels, shapes or probabilities that are impossible for this many images and classes.

        Raises:
            RunError: if the stored labels are damaged.
        """
        labels, confidence = self.target.labels, self.target.confidence
        soft = confidence if self.target.soft is None else self.target.soft
        whole = all(tuple(each.shape) == (images,) for each in (labels, confidence, self.selected))
        if not whole or self.selected.dtype != torch.bool:
            wrong = f"it does not hold one label for each of {images:,} images"
        elif images and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
            wrong = f"some labels are none of the {classes} classes"
        elif not all(map(_probable, (confidence, soft))):
            wrong = "some confidence is no probability"
        elif self.target.soft is not None and tuple(soft.shape) != (images, classes):
            wrong = f"it does not hold probabilities of {classes} classes for each image"
        else:
            return
        raise RunError(f"{folder / run_files.PSEUDO_IMAGES} is damaged: {wrong}; {store.remedy(folder)}")


def _probable(values: Tensor) -> bool:
    return bool(((values >= 0) & (values <= shapes.SUREST)).all())  # false for NaN too
