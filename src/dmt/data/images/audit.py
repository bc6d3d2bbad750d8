"""The only place that knows the truth of unlabeled images. It gives numbers to the report and nothing to training."""

import torch
from torch import Tensor

from dmt.core import selection
from dmt.data.sets import LabeledSet

TOPS = (0.2, 0.4, 0.6, 0.8, 1.0)


class Audit:
    """Checks pseudo labels against the truth that training never sees.

    Attributes:
        everything: all training images with their truth, for the Oracle alone.
    """

    def __init__(self, truth: Tensor | None, everything: LabeledSet[Tensor]) -> None:
        self._truth = truth  # (N,) int64, in the order of the unlabeled set; None if nobody knows it
        self.everything = everything

    @property
    def known(self) -> bool:
        """Whether anybody knows the truth of the unlabeled images."""
        return self._truth is not None

    def pseudo_labels(
        self, labels: Tensor, confidence: Tensor, selected: Tensor, weights: Tensor | None
    ) -> dict[str, object]:
        """Error of the most confident 20…100 % of *all* pseudo labels, and of those that were kept.

        Args:
            labels, confidence: (N,) of every unlabeled image.
            selected: (N,) bool, those that were kept and maybe altered by a stress test.
            weights: (N,) the finished student's weight of each label, or None if it did not weigh.

        Returns:
            Percentages and mean weights ready for the journal; None where nothing could be counted.
        """
        if self._truth is None:
            return {} if weights is None else {"weight_kept": _mean(weights, selected.float())}
        wrong = (labels != self._truth).float()
        kept = selected.float()
        result: dict[str, object] = {
            "error_top": {f"{top:.0%}": _share(wrong, selection.top(confidence, top).float()) for top in TOPS},
            "error_kept": _share(wrong, kept),
        }
        if weights is not None:
            tops = {f"{top:.0%}": selection.top(confidence, top).float() * weights for top in TOPS}
            result["error_top_weighted"] = {name: _share(wrong, each) for name, each in tops.items()}
            result["error_kept_weighted"] = _share(wrong, kept * weights)
            result["weight_right"] = _mean(weights, kept * (1 - wrong))
            result["weight_wrong"] = _mean(weights, kept * wrong)
        return result


def _share(hits: Tensor, weights: Tensor) -> float | None:
    mean = _mean(hits, weights)
    return None if mean is None else 100.0 * mean


def _mean(values: Tensor, weights: Tensor) -> float | None:
    total = weights.double().sum()
    return float(torch.dot(values.double(), weights.double()) / total) if total > 0 else None
