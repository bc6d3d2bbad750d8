"""Per-class statistics of kept pseudo labels: errors, loss weights, and agreement with the student."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from dmt.core.weighting import CASES
from dmt.data.audits import Weighed
from dmt.types import IGNORE


class Tally:
    """Per-class sums over kept labels of sites whose ground truth is known.

    Labels, errors and cases are counted under the class that the teacher predicted. Weights and the weighted error are
    counted under the class that the student learns, which differs where flipping changes the label.
    """

    def __init__(self, classes: int) -> None:
        self._classes = classes
        self._sums: dict[str, Tensor] = {}  # (C,) float64 each

    def add(self, truth: Tensor, labels: Tensor, weighed: Weighed | None = None) -> None:
        """Add the labels of some images.

        Args:
            truth: (n, *S) int64 ground truth, ``IGNORE`` where it is unknown.
            labels: (n, *S) int64 labels of the teacher, ``IGNORE`` where none was kept.
            weighed: the student's loss weights of the same images; None if all labels have the same weight.
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
        """Return the statistics over all classes and, in ``by_class``, a list with one entry per class.

        Entries are None where nothing could be counted.

        Args:
            predicted: (C,) number of labels on the same sites before selection, if they were counted.
        """
        sums = self._sums if predicted is None else self._sums | {"predicted": torch.tensor(predicted).double()}
        whole = _figures({name: each.sum(0, keepdim=True) for name, each in sums.items()})
        return {name: values[0] for name, values in whole.items()} | {"by_class": _figures(sums)}


def _figures(sums: Mapping[str, Tensor]) -> dict[str, list[Any]]:
    """Turn sums into statistics: errors in percent, all other ratios and weights from 0 to 1."""
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
