"""The audit of image classification, which knows the ground truth of unlabeled images."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from dmt.core import selection
from dmt.data.audits import TOPS, Audit, Weigh, Weighed
from dmt.data.sets import PseudoLabels
from dmt.data.tallies import Tally
from dmt.types import IGNORE


class ImageAudit(Audit[Tensor]):
    """Checks pseudo labels of images. All of them are stored, so all can be judged when their stage is done."""

    def pseudo_labels(
        self, labels: PseudoLabels[Tensor], weigh: Weigh | None, device: torch.device, observed: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the error of the most confident 20…100 % of *all* labels and the `Tally` of the kept ones."""
        weighed = None if weigh is None else _gathered(weigh, labels.labels)
        if self._truth is None:
            return {} if weighed is None else {"weight_kept": _mean(weighed.weights, labels.selected.float())}
        tally = Tally(self._classes)
        tally.add(self._truth, labels.labels.where(labels.selected, IGNORE), weighed)
        found = tally.numbers(labels.labels.bincount(minlength=self._classes).tolist())
        tops = {f"{top:.0%}": selection.top(labels.confidence, top).float() for top in TOPS}
        wrong = (labels.labels != self._truth).float()
        result: dict[str, Any] = {
            "images": len(labels),
            "images_all": len(labels),
            "error_top": {name: _share(wrong, top) for name, top in tops.items()},
            "error_kept_all": found["error_kept"],
        }
        if weighed is not None:
            wrong = (weighed.learned != self._truth).float()
            result["error_top_weighted"] = {name: _share(wrong, top * weighed.weights) for name, top in tops.items()}
        return result | found


def _gathered(weigh: Weigh, labels: Tensor) -> Weighed:
    """Collect the learned label, loss weight and case of every image, in order and on the host."""
    count = len(labels)
    learned, weights, cases = torch.empty_like(labels), torch.empty(count), torch.empty_like(labels)
    asked = True
    for each in weigh(None):
        learned[each.positions], weights[each.positions] = each.learned.cpu(), each.weights.cpu()
        asked = asked and each.cases is not None
        if each.cases is not None:
            cases[each.positions] = each.cases.cpu()
    return Weighed(torch.arange(count), learned, weights, cases if asked else None)


def _share(hits: Tensor, weights: Tensor) -> float | None:
    mean = _mean(hits, weights)
    return None if mean is None else 100.0 * mean


def _mean(values: Tensor, weights: Tensor) -> float | None:
    total = weights.double().sum()
    return float(torch.dot(values.double(), weights.double()) / total) if total > 0 else None
