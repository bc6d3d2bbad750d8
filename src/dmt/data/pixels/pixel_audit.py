"""Knows the masks of unlabeled images."""

from typing import Any

import torch
from torch import Tensor

from dmt.core import streams
from dmt.core.codes import LEVELS
from dmt.data.audits import TOPS, Audit, Weigh
from dmt.data.pixels import size_groups
from dmt.data.pixels.size_groups import NO_LABEL, Group
from dmt.data.ragged import Ragged
from dmt.data.sets import PseudoLabels

WEIGHED = 500
"""Images whose pixels the finished student weighs: hundreds of thousands of pixels tell as much as all of them."""


class PixelAudit(Audit[Ragged]):
    """Checks pseudo labels of pixels. Of those that are not kept only the confidence is stored."""

    def observer(self) -> "ErrorByConfidence | None":
        return None if self._truth is None else ErrorByConfidence(self._truth)

    def pseudo_labels(self, labels: PseudoLabels[Ragged], weigh: Weigh | None, device: torch.device) -> dict[str, Any]:
        """Error of all labels that were kept and, of some images, plain and as the student weighs them."""
        if self._truth is None:
            return {}
        every, some = Tally(self._truth), Tally(self._truth)
        for group in size_groups.groups(labels.labels.sizes):
            every.add(torch.tensor(group.positions), size_groups.gather_plane(labels.labels, group, device))
        result: dict[str, Any] = {"error_kept": every.error()}
        if weigh is None:
            return result
        chosen = streams.stream("weighed").permutation(len(labels))[:WEIGHED]
        for each in weigh(torch.from_numpy(chosen)):
            some.add(each.positions, _planes(labels.labels, each.positions, each.weights), each.weights, each.learned)
        return result | {"error_kept_sample": some.error()} | some.weighted()

    def mask(self, position: int) -> Tensor | None:
        return None if self._truth is None else self._truth.image(position)


class ErrorByConfidence:
    """Counts right and wrong labels by the code of their confidence, as they come."""

    def __init__(self, truth: Ragged) -> None:
        self._truth = truth
        self._counts = torch.zeros(2 * LEVELS + 1, dtype=torch.int64)  # right, wrong, and those without truth

    def see(self, positions: Tensor, labels: Tensor, codes: Tensor) -> None:
        """Labels and codes (n, H, W) of the unlabeled images at these positions, padded at the bottom and right."""
        truth = _planes(self._truth, positions, labels)
        cells = ((labels != truth).long() * LEVELS + codes).masked_fill_(truth == NO_LABEL, 2 * LEVELS).flatten()
        # counted where the labels are, in place and of a shape that is known: a GPU need not be waited for
        self._counts = self._counts.to(cells.device)
        self._counts.scatter_add_(0, cells, self._counts.new_ones(1).expand(len(cells)))

    def numbers(self) -> dict[str, Any]:
        return {"error_top": self.error_top()}

    def error_top(self) -> dict[str, float | None]:
        """Error of the most confident 20…100 % of all pixels, in percent; equal confidences share alike."""
        counts = self._counts[:-1].view(2, LEVELS).cpu().double().flip(1)  # surest first
        seen, wrong = counts.sum(0).cumsum(0), counts[1].cumsum(0)
        total = float(seen[-1])
        if not total:
            return {f"{top:.0%}": None for top in TOPS}
        result: dict[str, float | None] = {}
        for top in TOPS:
            wanted = top * total
            level = int((seen < wanted - 1e-6).sum())  # the code at which enough have been seen
            before = float(seen[level - 1]) if level else 0.0
            share = (wanted - before) / max(float(seen[level]) - before, 1.0)
            errors = (float(wrong[level - 1]) if level else 0.0) + share * float(counts[1, level])
            result[f"{top:.0%}"] = 100.0 * errors / wanted
        return result


class Tally:
    """Sums over the kept labels of some images."""

    def __init__(self, truth: Ragged) -> None:
        self._truth = truth
        self._sums = torch.zeros(5, dtype=torch.float64)

    def add(
        self, positions: Tensor, labels: Tensor, weights: Tensor | None = None, learned: Tensor | None = None
    ) -> None:
        """Kept labels of some images.

        Args:
            positions: (n,) of the images in the unlabeled set.
            labels: (n, H, W) uint8, the teacher's, 255 where none.
            weights: (n, H, W), how much the student counts them; alike if None.
            learned: (n, H, W), what the student learned in their place; the same if None.
        """
        truth = _planes(self._truth, positions, labels)
        kept = (labels != NO_LABEL) & (truth != NO_LABEL)
        weights = kept.float() if weights is None else weights.where(kept, 0.0)
        wrong, mislearned = kept & (labels != truth), kept & ((labels if learned is None else learned) != truth)
        sums = (kept, wrong, mislearned, weights, weights.where(mislearned, 0.0))
        self._sums = self._sums.to(truth.device)
        self._sums += torch.stack([each.sum(dtype=torch.float64) for each in sums])

    def error(self) -> float | None:
        """Share of the kept labels that are wrong, in percent."""
        kept, wrong, *_ = self._sums.tolist()
        return 100.0 * wrong / kept if kept else None

    def weighted(self) -> dict[str, float | None]:
        """The same by weight and as learned, and the mean weight of what is right and of what is wrong."""
        kept, _, wrong, weights, lost = self._sums.tolist()
        return {
            "error_kept_weighted": 100.0 * lost / weights if weights else None,
            "weight_right": (weights - lost) / (kept - wrong) if kept > wrong else None,
            "weight_wrong": lost / wrong if wrong else None,
        }


def _planes(planes: Ragged, positions: Tensor, like: Tensor) -> Tensor:
    """Planes (n, H, W) uint8 of these positions, padded with 255 to the size of ``like``, on its device."""
    group = Group(positions.tolist(), like.shape[-2], like.shape[-1])
    return size_groups.gather_plane(planes, group, like.device)
