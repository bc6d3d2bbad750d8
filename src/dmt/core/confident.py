"""Find given labels that are probably wrong, by the probabilities of nets that were not trained on those labels.

Nets are more confident in some classes than in others, so each class gets a *threshold* of its own: the mean
probability of the given label over the sites with that label, as in confident learning (Northcutt, Jiang and Chuang,
2021). There, a label is suspicious where another class reaches its threshold. That misses every wrong label whose true
class is a bit less probable than in the mean. Here, the probability of another class must exceed that of the given
label by a share of the other class's threshold.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from dmt.types import IGNORE

LEAD = 2 / 3
"""Share of its own threshold by which another class must exceed the probability of the given label."""


class Thresholds:
    """Accumulates, batch by batch, the mean probability of the given label per class, and how often nets agree."""

    def __init__(self, classes: int) -> None:
        self._sums = torch.zeros(classes, dtype=torch.float64)
        self._counts = torch.zeros(classes, dtype=torch.float64)
        self._believed = 0

    def add(self, probabilities: Tensor, given: Tensor) -> None:
        """Add a batch: probabilities (N, C, *S), and given labels (N, *S) with ``IGNORE`` where there is none."""
        valid = given != IGNORE
        labels, own = given[valid].cpu(), self_confidence(probabilities, given)[valid].double().cpu()
        self._sums += torch.bincount(labels, own, minlength=len(self._sums))
        self._counts += torch.bincount(labels, minlength=len(self._counts))
        self._believed += int((probabilities.argmax(1) == given)[valid].sum())

    @property
    def agreement(self) -> float:
        """Share of given labels that are also the most probable class; NaN without labels."""
        count = float(self._counts.sum())
        return self._believed / count if count else math.nan

    def values(self) -> Tensor:
        """Return the thresholds, (C,) float32; infinite, so never reached, for a class that no label has."""
        return (self._sums / self._counts).nan_to_num(nan=math.inf).float()


@dataclass(frozen=True)
class Judgment:
    """Assessment of given labels by the nets; each field is (N, *S).

    Attributes:
        suggested: the most plausible other class, never the given one.
        margin: its probability minus that of the given label, in [-1, 1]; 0 where no label can be judged.
        suspicious: bool, true where the given label is probably wrong.
    """

    suggested: Tensor
    margin: Tensor
    suspicious: Tensor


def self_confidence(probabilities: Tensor, given: Tensor) -> Tensor:
    """Return the probability of the given label, (N, *S); that of class 0 where there is no label."""
    return probabilities.gather(1, given.clamp(min=0).unsqueeze(1)).squeeze(1)


def judge(probabilities: Tensor, given: Tensor, thresholds: Tensor, known: Tensor | None = None) -> Judgment:
    """Compare given labels with predictions of nets that were not trained on them.

    Args:
        probabilities: (N, C, *S).
        given: (N, *S) int64, ``IGNORE`` where there is no label.
        thresholds: (C,), from `Thresholds`.
        known: (C,) bool, the classes that the nets were trained on; labels of other classes cannot be judged.
    """
    labels, own = given.clamp(min=0), self_confidence(probabilities, given)
    others = probabilities.scatter(1, labels.unsqueeze(1), -1.0)
    bars = LEAD * thresholds.to(probabilities).view(1, -1, *[1] * (given.dim() - 1))
    sure, likely = others.where(others - own.unsqueeze(1) >= bars, -1.0).max(1), others.max(1)
    reached = sure.values >= 0
    suggested = sure.indices.where(reached, likely.indices)
    judged = given != IGNORE
    if known is not None:
        judged &= known.to(given.device)[labels]
    margin = sure.values.where(reached, likely.values) - own
    return Judgment(suggested, margin.where(judged, 0.0), judged & reached & (margin > 0))


@dataclass(frozen=True)
class Summary:
    """A judgment summarized per image; fields are (N,). For images with a single label it repeats the judgment.

    Attributes:
        share: share of the image's labeled sites that are suspicious.
        score: how wrong the labels look: the margin of an image's only label; with a label per pixel, the sum of the
            margins of suspicious pixels over the number of labeled pixels.
        given, suggested: the most frequent pair of classes among suspicious sites; ``IGNORE`` where none is suspicious.
        sites: (N, *S) bool, the suspicious sites with that pair.
    """

    share: Tensor
    score: Tensor
    given: Tensor
    suggested: Tensor
    sites: Tensor


def summarize(judgment: Judgment, given: Tensor, classes: int) -> Summary:
    """Return how much of each image is suspicious, and which two classes are mostly confused in it."""
    suspicious = judgment.suspicious
    if given.dim() == 1:
        every = torch.ones_like(suspicious)
        return Summary(suspicious.float(), judgment.margin, given, judgment.suggested, every)
    count = (given != IGNORE).flatten(1).sum(1).clamp(min=1)
    share = suspicious.flatten(1).sum(1) / count
    score = judgment.margin.where(suspicious, 0.0).flatten(1).sum(1) / count
    pairs = given * classes + judgment.suggested
    prevailing = torch.full_like(count, IGNORE)
    for row in suspicious.flatten(1).any(1).nonzero().squeeze(1).tolist():
        prevailing[row] = pairs[row][suspicious[row]].bincount().argmax()
    there = prevailing >= 0
    sites = suspicious & (pairs == prevailing.view(-1, *[1] * (given.dim() - 1)))
    first, second = prevailing.div(classes, rounding_mode="floor"), prevailing % classes
    return Summary(share, score, first.where(there, IGNORE), second.where(there, IGNORE), sites)
