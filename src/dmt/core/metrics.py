"""Scores of predictions against truth: accumulate, then compute."""

import torch
from torch import Tensor

from dmt.types import IGNORE

BINS = 10
"""Ranges of confidence by which calibration is told."""


class Confusion:
    """Confusion matrix (C, C), rows truth and columns prediction, for sites of any shape; with fine-grained hits.

    Fine-grained accuracy counts a right answer as its probability, so that two nets with the same hits can still be
    told apart on a small validation set. It must not compare nets trained with mixup and without.
    """

    def __init__(self, classes: int, device: torch.device | str = "cpu") -> None:
        self.classes = classes
        self.matrix = torch.zeros(classes, classes, dtype=torch.int64, device=device)
        self.sure = torch.zeros((), dtype=torch.float64, device=device)
        self.bins = torch.zeros(BINS, 3, dtype=torch.float64, device=device)  # sites, their confidence, right ones

    @torch.no_grad()
    def add(self, logits: Tensor, truth: Tensor) -> None:
        """Count a batch: logits (N, C, *S), truth (N, *S) with ``IGNORE`` where there is none."""
        confidence, labels = logits.float().softmax(1).max(1)
        valid = truth != IGNORE
        cells = truth[valid] * self.classes + labels[valid]
        self.matrix += torch.bincount(cells, minlength=self.classes**2).view(self.classes, self.classes)
        right = (labels == truth)[valid].double()
        confidence = confidence[valid].double()
        self.sure += (confidence * right).sum()
        columns = (torch.ones_like(confidence), confidence, right)
        places = (confidence * BINS).long().clamp(max=BINS - 1)
        self.bins += torch.stack([torch.bincount(places, each, BINS) for each in columns], 1)

    @property
    def count(self) -> int:
        """Sites counted so far."""
        return int(self.matrix.sum())

    def accuracy(self) -> float:
        """Share of right answers, in percent; NaN when nothing was counted."""
        return _percent(int(self.matrix.diagonal().sum()), self.count)

    def fine_grained(self) -> float:
        """(1/N) Σ 1[right]·p(right), in percent."""
        return _percent(float(self.sure), self.count)

    def calibration(self) -> list[tuple[int, float, float]]:
        """By range of confidence: sites, their mean confidence and accuracy in percent; zeros for an empty one."""
        rows = self.bins.tolist()
        return [(int(n), _percent(sure, n) if n else 0.0, _percent(right, n) if n else 0.0) for n, sure, right in rows]

    def calibration_error(self) -> float:
        """Expected calibration error: the mean gap between confidence and accuracy, in percent."""
        gaps = (self.bins[:, 1] - self.bins[:, 2]).abs().sum()
        return _percent(float(gaps), self.count)

    def per_class(self) -> list[float]:
        """Recall of each class in percent; NaN for a class without truth."""
        hits, totals = self.matrix.diagonal().tolist(), self.matrix.sum(1).tolist()
        return [_percent(hit, total) for hit, total in zip(hits, totals, strict=True)]

    def iou(self) -> list[float]:
        """Intersection over union of each class in percent; NaN for a class without truth."""
        hits, totals = self.matrix.diagonal().tolist(), self.matrix.sum(1).tolist()
        predicted = self.matrix.sum(0).tolist()
        unions = [
            total + guess - hit if total else 0 for hit, total, guess in zip(hits, totals, predicted, strict=True)
        ]
        return [_percent(hit, union) for hit, union in zip(hits, unions, strict=True)]

    def mean_iou(self) -> float:
        """Mean of `iou` over the classes that truth holds; a class it lacks is left out, not counted as 0."""
        present = [value for value in self.iou() if value == value]
        return sum(present) / len(present) if present else float("nan")

    def absent(self) -> list[int]:
        """Classes without truth."""
        return [label for label, total in enumerate(self.matrix.sum(1).tolist()) if not total]


def _percent(part: float, whole: float) -> float:
    return 100.0 * part / whole if whole else float("nan")
