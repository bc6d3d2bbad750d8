"""Which given labels are probably wrong, told from the probabilities of nets that never saw those labels.

Nets are surer of some classes than of others, so what counts as sure is measured: a class's *threshold* is the mean
probability that sites labeled so get for their own label, as in confident learning (Northcutt, Jiang and Chuang, 2021).
There a label is suspicious where another class reaches its threshold; that misses every wrong label that looks a bit
worse than the mean of right ones. Here another class must lead the given one by a share of its threshold.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from dmt.types import IGNORE

LEAD = 2 / 3
"""Share of its threshold by which another class must lead the given one."""


class Thresholds:
    """The mean probability of a given label, class by class, added up as predictions come; and how many agree."""

    def __init__(self, classes: int) -> None:
        self._sums = torch.zeros(classes, dtype=torch.float64)
        self._counts = torch.zeros(classes, dtype=torch.float64)
        self._believed = 0

    def add(self, probabilities: Tensor, given: Tensor) -> None:
        """Probabilities (N, C, *S) of sites with given labels (N, *S)."""
        valid = given != IGNORE
        labels, own = given[valid].cpu(), self_confidence(probabilities, given)[valid].double().cpu()
        self._sums += torch.bincount(labels, own, minlength=len(self._sums))
        self._counts += torch.bincount(labels, minlength=len(self._counts))
        self._believed += int((probabilities.argmax(1) == given)[valid].sum())

    @property
    def agreement(self) -> float:
        """The share of the labels that get the highest probability of all classes; NaN without labels."""
        count = float(self._counts.sum())
        return self._believed / count if count else math.nan

    def values(self) -> Tensor:
        """(C,) float32. A class that no label names has no threshold that anything could reach."""
        return (self._sums / self._counts).nan_to_num(nan=math.inf).float()


@dataclass(frozen=True)
class Judgment:
    """What is thought of given labels, each (N, *S).

    Attributes:
        suggested: the class they should be, if they are wrong; never the given one.
        margin: its probability less that of the given label, in [-1, 1]; 0 where there is no label.
        suspicious: bool, the labels that are probably wrong.
    """

    suggested: Tensor
    margin: Tensor
    suspicious: Tensor


def self_confidence(probabilities: Tensor, given: Tensor) -> Tensor:
    """(N, *S) probability of the given label, of class 0 where there is none."""
    return probabilities.gather(1, given.clamp(min=0).unsqueeze(1)).squeeze(1)


def judge(probabilities: Tensor, given: Tensor, thresholds: Tensor, known: Tensor | None = None) -> Judgment:
    """Compare given labels with what nets say that did not learn from them.

    Args:
        probabilities: (N, C, *S).
        given: (N, *S) int64, IGNORE where there is no label.
        thresholds: (C,).
        known: (C,) bool, classes the nets have seen; labels of other classes cannot be judged.
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
    """A judgment image by image, each (N,); for images with one label it says the same again.

    Attributes:
        share: of the labeled sites, those that are suspicious.
        score: how wrong the labels look. Of one label its margin, of many the margins of the suspicious ones, as a
            mean over all.
        given, suggested: the pair of classes that most suspicious sites have; IGNORE where no site is suspicious.
        sites: (N, *S) bool, where that pair is.
    """

    share: Tensor
    score: Tensor
    given: Tensor
    suggested: Tensor
    sites: Tensor


def summarize(judgment: Judgment, given: Tensor, classes: int) -> Summary:
    """Of every image, how much of it is suspicious, and which confusion prevails."""
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
