"""Labels as scikit-learn gives them, −1 where there is none, and what became of the others."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets

UNLABELED = -1

Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Targets:
    """The labels of all samples.

    Attributes:
        given: as they were given, `UNLABELED` where there is none.
        classes: in order.
        labeled: positions of the samples that have a label.
        unlabeled: positions of the others.
        codes: places of the labels among the classes, for the labeled samples.
    """

    given: npt.NDArray[Any]
    classes: npt.NDArray[Any]
    labeled: Codes
    unlabeled: Codes
    codes: Codes

    @classmethod
    def read(cls, y: npt.NDArray[Any]) -> "Targets":
        """Labels that were validated; a warning if there is nothing to learn from but them."""
        if y.dtype.kind in "US":
            raise ValueError(
                "y has dtype string, in which -1 cannot mean 'unlabeled'; give an array of dtype object, "
                "with strings for labels and the number -1 for samples without one"
            )
        has_label = np.asarray(y != UNLABELED)
        if not has_label.any():
            raise ValueError("y contains no labels: every sample is -1, so no class is known")
        check_classification_targets(y[has_label])
        if has_label.all():
            warnings.warn("y contains no unlabeled samples", UserWarning, stacklevel=3)
        classes, codes = np.unique(y[has_label], return_inverse=True)
        return cls(y, classes, np.flatnonzero(has_label), np.flatnonzero(~has_label), codes.astype(np.int64))


@dataclass(frozen=True)
class Taught:
    """Labels that one teacher gave the unlabeled samples in a round; each field is (U,)."""

    labels: Codes
    confidence: npt.NDArray[Any]
    kept: Bools


class Transduction:
    """Who got which label when, over the rounds of two teachers."""

    def __init__(self, targets: Targets) -> None:
        self._targets = targets
        self._first = np.full(len(targets.unlabeled), UNLABELED)
        self._labels: Codes = np.full(len(targets.unlabeled), UNLABELED)
        self.rounds = 0

    def add(self, *teachers: Taught) -> None:
        """A round. Where several teachers kept a sample, the surest one's label stands."""
        self.rounds += 1
        confidence = np.stack([np.where(each.kept, each.confidence, -1.0) for each in teachers])
        surest = confidence.argmax(0)[None]
        labels = np.take_along_axis(np.stack([each.labels for each in teachers]), surest, 0)[0]
        kept = np.logical_or.reduce([each.kept for each in teachers])
        self._labels = np.where(kept, labels, UNLABELED)
        self._first = np.where(kept & (self._first == UNLABELED), self.rounds, self._first)

    def labels(self) -> npt.NDArray[Any]:
        """(n,) those given, those of the last round, and `UNLABELED` where that kept none."""
        found = np.copy(self._targets.given)
        known = self._labels != UNLABELED
        found[self._targets.unlabeled[known]] = self._targets.classes[self._labels[known]]
        return found

    def first_rounds(self) -> Codes:
        """(n,) the round in which a sample was first labeled: 0 if its label was given, −1 if that never happened."""
        found = np.zeros(len(self._targets.given), np.int64)
        found[self._targets.unlabeled] = self._first
        return found

    @property
    def complete(self) -> bool:
        """Whether every sample has a label."""
        return bool((self._labels != UNLABELED).all())
