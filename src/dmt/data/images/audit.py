"""Knows the truth of unlabeled images."""

from typing import Any

import torch
from torch import Tensor

from dmt.core import selection
from dmt.data.audits import TOPS, Audit, Weigh
from dmt.data.sets import PseudoLabels


class ImageAudit(Audit[Tensor]):
    """Checks pseudo labels of images. All of them are stored, so all are judged when their stage is done."""

    def pseudo_labels(self, labels: PseudoLabels[Tensor], weigh: Weigh | None, device: torch.device) -> dict[str, Any]:
        """Error of the most confident 20…100 % of *all* labels, and of those that were kept; on the host."""
        weighed = None if weigh is None else _gathered(weigh, labels.labels)
        kept = labels.selected.float()
        if self._truth is None:
            return {} if weighed is None else {"weight_kept": _mean(weighed[1], kept)}
        wrong = (labels.labels != self._truth).float()
        tops = {f"{top:.0%}": selection.top(labels.confidence, top).float() for top in TOPS}
        result: dict[str, Any] = {
            "error_top": {name: _share(wrong, top) for name, top in tops.items()},
            "error_kept": _share(wrong, kept),
        }
        if weighed is not None:
            learned, weights = weighed
            wrong = (learned != self._truth).float()
            result["error_top_weighted"] = {name: _share(wrong, top * weights) for name, top in tops.items()}
            result["error_kept_weighted"] = _share(wrong, kept * weights)
            result["weight_right"] = _mean(weights, kept * (1 - wrong))
            result["weight_wrong"] = _mean(weights, kept * wrong)
        return result


def _gathered(weigh: Weigh, labels: Tensor) -> tuple[Tensor, Tensor]:
    """What is learned of every image, and how much that counts, (N,)."""
    learned, weights = torch.empty_like(labels), torch.empty(len(labels))
    for each in weigh(None):
        learned[each.positions], weights[each.positions] = each.learned.cpu(), each.weights.cpu()
    return learned, weights


def _share(hits: Tensor, weights: Tensor) -> float | None:
    mean = _mean(hits, weights)
    return None if mean is None else 100.0 * mean


def _mean(values: Tensor, weights: Tensor) -> float | None:
    total = weights.double().sum()
    return float(torch.dot(values.double(), weights.double()) / total) if total > 0 else None
