"""Scores of predictions against ground truth, accumulated over batches."""

import torch
from torch import Tensor

from dmt.types import IGNORE

BINS = 10
"""Number of equal confidence bins for calibration."""


class Confusion:
    """Confusion matrix (C, C), rows truth and columns prediction, for sites of any shape; also confidence sums.

    Fine-grained accuracy counts a correct site as its predicted probability, so that nets of equal accuracy on a small
    validation set can still be ranked. It must not be used to compare nets trained with mixup to nets trained without.
    """

    def __init__(self, classes: int, device: torch.device | str = "cpu") -> None:
        self.classes = classes
        self.matrix = torch.zeros(classes, classes, dtype=torch.int64, device=device)
        self.sure = torch.zeros((), dtype=torch.float64, device=device)
        # per bin: number of sites, sum of their confidences, number of correct ones
        self.bins = torch.zeros(BINS, 3, dtype=torch.float64, device=device)

    @torch.no_grad()
    def add(self, logits: Tensor, truth: Tensor) -> None:
        """Add a batch: logits (N, C, *S), and truth (N, *S) with ``IGNORE`` where there is none."""
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
        """Number of sites counted so far."""
        return int(self.matrix.sum())

    def accuracy(self) -> float:
        """Return the share of correct sites in percent; NaN if nothing was counted."""
        return _percent(int(self.matrix.diagonal().sum()), self.count)

    def fine_grained(self) -> float:
        """Return (1/N) Σ 1[correct]·max p in percent; NaN if nothing was counted."""
        return _percent(float(self.sure), self.count)

    def calibration(self) -> list[tuple[int, float, float]]:
        """Return, per confidence bin, the number of sites, mean confidence and accuracy (%); zeros for an empty bin."""
        rows = self.bins.tolist()
        return [(int(n), _percent(sure, n) if n else 0.0, _percent(right, n) if n else 0.0) for n, sure, right in rows]

    def calibration_error(self) -> float:
        """Return the expected calibration error, the mean gap between confidence and accuracy over bins, in percent."""
        gaps = (self.bins[:, 1] - self.bins[:, 2]).abs().sum()
        return _percent(float(gaps), self.count)

    def per_class(self) -> list[float]:
        """Return the recall of each class in percent; NaN for a class without truth."""
        hits, totals = self.matrix.diagonal().tolist(), self.matrix.sum(1).tolist()
        return [_percent(hit, total) for hit, total in zip(hits, totals, strict=True)]

    def iou(self) -> list[float]:
        """Return the intersection over union of each class in percent; NaN for a class without truth."""
        hits, totals = self.matrix.diagonal().tolist(), self.matrix.sum(1).tolist()
        predicted = self.matrix.sum(0).tolist()
        unions = [
            total + guess - hit if total else 0 for hit, total, guess in zip(hits, totals, predicted, strict=True)
        ]
        return [_percent(hit, union) for hit, union in zip(hits, unions, strict=True)]

    def mean_iou(self) -> float:
        """Return the mean of `iou` over the classes that occur in the truth; other classes are left out, not 0."""
        present = [value for value in self.iou() if value == value]
        return sum(present) / len(present) if present else float("nan")

    def absent(self) -> list[int]:
        """Return the classes that do not occur in the truth."""
        return [label for label, total in enumerate(self.matrix.sum(1).tolist()) if not total]


def _percent(part: float, whole: float) -> float:
    return 100.0 * part / whole if whole else float("nan")
