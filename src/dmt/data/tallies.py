"""Counts kept pseudo labels by class: how many are wrong, how much they weigh, in which case they are."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from dmt.core.weighting import CASES
from dmt.data.audits import Weighed
from dmt.types import IGNORE


class Tally:
    """Sums over the kept labels of some images, by class, where the truth is known.

    Labels, errors and cases count for the class that the teacher gave; weights, and what they leave of the error, for
    the class that the student learns, which flipping may change.
    """

    def __init__(self, classes: int) -> None:
        self._classes = classes
        self._sums: dict[str, Tensor] = {}  # (C,) float64 each

    def add(self, truth: Tensor, labels: Tensor, weighed: Weighed | None = None) -> None:
        """Labels of some images.

        Args:
            truth: (n, *S) int64, ``IGNORE`` where nobody knows it.
            labels: (n, *S) int64, the teacher's, ``IGNORE`` where none was kept.
            weighed: the same images as the student counts them; None if it counts all labels alike.
        """
        there = (labels != IGNORE) & (truth != IGNORE)
        truth, labels = truth[there], labels[there]
        self._add("kept", labels)
        self._add("wrong", labels[labels != truth])
        if weighed is None:
            return
        learned, weights = weighed.learned[there], weighed.weights[there]
        lost = learned != truth
        self._add("learned", learned)
        self._add("mislearned", learned[lost])
        self._add("weight", learned, weights)
        self._add("lost", learned[lost], weights[lost])
        if weighed.cases is not None:
            for name, case in CASES.items():
                self._add(name, labels[weighed.cases[there] == case])

    def _add(self, name: str, labels: Tensor, weights: Tensor | None = None) -> None:
        found = torch.bincount(labels, None if weights is None else weights.double(), self._classes).double().cpu()
        self._sums[name] = self._sums.get(name, 0.0) + found

    def numbers(self, predicted: Sequence[int] | None = None) -> dict[str, Any]:
        """Over all classes and, in ``by_class``, lists of each class; None where nothing could be counted.

        Args:
            predicted: (C,) labels on the same sites before the surest were kept, if they were counted.
        """
        sums = self._sums if predicted is None else self._sums | {"predicted": torch.tensor(predicted).double()}
        whole = _figures({name: each.sum(0, keepdim=True) for name, each in sums.items()})
        return {name: values[0] for name, values in whole.items()} | {"by_class": _figures(sums)}


def _figures(sums: Mapping[str, Tensor]) -> dict[str, list[Any]]:
    """Errors in percent, all other shares and weights from 0 to 1."""
    kept = sums["kept"]
    found: dict[str, list[Any]] = {"kept": kept.long().tolist(), "error_kept": _ratios(100.0 * sums["wrong"], kept)}
    if "predicted" in sums:
        found["coverage"] = _ratios(kept, sums["predicted"])
    if "weight" in sums:
        weight, lost, wrong = sums["weight"], sums["lost"], sums["mislearned"]
        found["error_kept_weighted"] = _ratios(100.0 * lost, weight)
        found["weight_right"] = _ratios(weight - lost, sums["learned"] - wrong)
        found["weight_wrong"] = _ratios(lost, wrong)
    return found | {name: _ratios(sums[name], kept) for name in CASES if name in sums}


def _ratios(parts: Tensor, wholes: Tensor) -> list[float | None]:
    pairs = zip(parts.tolist(), wholes.tolist(), strict=True)
    return [part / whole if whole else None for part, whole in pairs]
