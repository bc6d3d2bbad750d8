"""The audit of segmentation, which knows the ground-truth masks of unlabeled images."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from dmt.core import streams, trees
from dmt.core.codes import LEVELS
from dmt.data.audits import TOPS, Audit, Weigh, Weighed
from dmt.data.pixels import size_groups
from dmt.data.pixels.size_groups import NO_LABEL, Group
from dmt.data.ragged import Ragged
from dmt.data.sets import PseudoLabels
from dmt.data.tallies import Tally

JUDGED = 500
"""Number of images whose kept pixels are judged by class and weight: their millions of pixels are enough."""


def judged(images: int) -> Tensor:
    """Return the positions of the images to judge, the same in every stage, so that stages can be compared."""
    return torch.from_numpy(streams.stream("weighed").permutation(images)[:JUDGED])


class PixelAudit(Audit[Ragged]):
    """Checks pseudo labels of pixels. For labels that are not kept, only the confidence is stored."""

    def observer(self) -> "LabelCounter | None":
        return None if self._truth is None else LabelCounter(self._truth, self._classes)

    def pseudo_labels(
        self, labels: PseudoLabels[Ragged], weigh: Weigh | None, device: torch.device, observed: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the error of all kept labels and, for `JUDGED` images, the `Tally` of their kept labels."""
        if self._truth is None:
            return {}
        chosen, tally = judged(len(labels)), Tally(self._classes)
        for like, weighed in _batches(labels, chosen) if weigh is None else _weighed(weigh, chosen):
            truth, given = (size_groups.gather_plane(each, like, device) for each in (self._truth, labels.labels))
            tally.add(size_groups.truth(truth), size_groups.truth(given), weighed)
        counted = dict(observed)
        return (
            {"images": len(chosen), "images_all": len(labels), "error_kept_all": self._error(labels, device)}
            | tally.numbers(counted.pop("predicted", None))
            | counted
        )

    def _error(self, labels: PseudoLabels[Ragged], device: torch.device) -> float | None:
        """Compute the percentage of kept labels that are wrong; None if no label can be judged."""
        assert self._truth is not None
        sums = torch.zeros(2, dtype=torch.int64, device=device)
        for group in size_groups.groups(labels.labels.sizes):
            truth, given = (size_groups.gather_plane(each, group, device) for each in (self._truth, labels.labels))
            kept = (given != NO_LABEL) & (truth != NO_LABEL)
            sums += torch.stack([kept.sum(), (kept & (given != truth)).sum()])
        total, wrong = sums.tolist()
        return 100.0 * wrong / total if total else None

    def mask(self, position: int) -> Tensor | None:
        return None if self._truth is None else self._truth.image(position)


class LabelCounter:
    """Counts labels while they are made: correct and wrong ones by confidence, and those of judged images by class."""

    def __init__(self, truth: Ragged, classes: int) -> None:
        self._truth, self._classes = truth, classes
        self._judged = torch.zeros(len(truth), dtype=torch.bool)
        self._judged[judged(len(truth))] = True
        self._counts = torch.zeros(2 * LEVELS + 1, dtype=torch.int64)  # correct, wrong, without truth
        self._predicted = torch.zeros(classes + 1, dtype=torch.int64)  # last: without truth

    def see(self, positions: Tensor, labels: Tensor, codes: Tensor) -> None:
        """Count labels and codes (n, H, W) of the unlabeled images at these positions, padded at bottom and right."""
        truth = size_groups.gather_plane(self._truth, Group(positions.tolist(), *labels.shape[-2:]), labels.device)
        unknown = truth == NO_LABEL
        cells = ((labels != truth).long() * LEVELS + codes).masked_fill_(unknown, 2 * LEVELS)
        self._counts = _counted(self._counts, cells)
        if bool(self._judged[positions].any()):
            rows = trees.send(self._judged[positions].nonzero().squeeze(1).numpy(), labels.device)
            self._predicted = _counted(self._predicted, labels[rows].long().masked_fill_(unknown[rows], self._classes))

    def numbers(self) -> dict[str, Any]:
        return {"error_top": self.error_top(), "predicted": self._predicted[:-1].tolist()}

    def error_top(self) -> dict[str, float | None]:
        """Compute the error of the most confident 20…100 % of all pixels, in percent.

        If only some pixels of one confidence code are among them, errors of that code count proportionally.
        """
        counts = self._counts[:-1].view(2, LEVELS).cpu().double().flip(1)  # most confident first
        seen, wrong = counts.sum(0).cumsum(0), counts[1].cumsum(0)
        total = float(seen[-1])
        if not total:
            return {f"{top:.0%}": None for top in TOPS}
        result: dict[str, float | None] = {}
        for top in TOPS:
            wanted = top * total
            level = int((seen < wanted - 1e-6).sum())  # the first code at which enough have been seen
            before = float(seen[level - 1]) if level else 0.0
            share = (wanted - before) / max(float(seen[level]) - before, 1.0)
            errors = (float(wrong[level - 1]) if level else 0.0) + share * float(counts[1, level])
            result[f"{top:.0%}"] = 100.0 * errors / wanted
        return result


def _counted(counts: Tensor, cells: Tensor) -> Tensor:
    """Add 1 to ``counts`` at every cell, on the cells' device. Unlike bincount, this never waits for a GPU."""
    counts, cells = counts.to(cells.device), cells.flatten()
    return counts.scatter_add_(0, cells, counts.new_ones(1).expand(len(cells)))


def _batches(labels: PseudoLabels[Ragged], chosen: Tensor) -> Iterator[tuple[Group, None]]:
    """Yield groups of the chosen images by padded size, without loss weights."""
    for group in size_groups.groups(labels.labels[chosen].sizes):
        yield Group(chosen[group.positions].tolist(), group.height, group.width), None


def _weighed(weigh: Weigh, chosen: Tensor) -> Iterator[tuple[Group, Weighed]]:
    """Yield groups of the chosen images with the student's loss weights."""
    for each in weigh(chosen):
        yield Group(each.positions.tolist(), *each.weights.shape[-2:]), each
