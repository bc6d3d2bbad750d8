"""Labels in scikit-learn's convention, −1 for unlabeled samples, and the pseudo labels of those over the rounds."""

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
        given: the given labels, `UNLABELED` for samples without one.
        classes: the classes in sorted order.
        labeled: positions of the labeled samples.
        unlabeled: positions of the unlabeled samples.
        codes: class indices of the labeled samples.
    """

    given: npt.NDArray[Any]
    classes: npt.NDArray[Any]
    labeled: Codes
    unlabeled: Codes
    codes: Codes

    @classmethod
    def read(cls, y: npt.NDArray[Any]) -> "Targets":
        """Check labels and split them; warn if there are no unlabeled samples."""
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
    """Pseudo labels of one teacher for the unlabeled samples in a round; each field has shape (U,)."""

    labels: Codes
    confidence: npt.NDArray[Any]
    kept: Bools


class Transduction:
    """Record of which sample got which pseudo label in which round."""

    def __init__(self, targets: Targets) -> None:
        self._targets = targets
        self._first = np.full(len(targets.unlabeled), UNLABELED)
        self._labels: Codes = np.full(len(targets.unlabeled), UNLABELED)
        self.rounds = 0

    def add(self, *teachers: Taught) -> None:
        """Add a round. If several teachers' labels of a sample were kept, the most confident one counts."""
        self.rounds += 1
        confidence = np.stack([np.where(each.kept, each.confidence, -1.0) for each in teachers])
        surest = confidence.argmax(0)[None]
        labels = np.take_along_axis(np.stack([each.labels for each in teachers]), surest, 0)[0]
        kept = np.logical_or.reduce([each.kept for each in teachers])
        self._labels = np.where(kept, labels, UNLABELED)
        self._first = np.where(kept & (self._first == UNLABELED), self.rounds, self._first)

    def labels(self) -> npt.NDArray[Any]:
        """Return (n,) the given labels and those kept in the last round, `UNLABELED` where none was kept."""
        found = np.copy(self._targets.given)
        known = self._labels != UNLABELED
        found[self._targets.unlabeled[known]] = self._targets.classes[self._labels[known]]
        return found

    def first_rounds(self) -> Codes:
        """Return (n,) the round in which each sample was first labeled: 0 if its label was given, −1 if never."""
        found = np.zeros(len(self._targets.given), np.int64)
        found[self._targets.unlabeled] = self._first
        return found

    @property
    def complete(self) -> bool:
        """Whether every sample has a label after the last round."""
        return bool((self._labels != UNLABELED).all())
