"""What a net said of every image, kept so small that scores can be asked again later, of any draw of the images.

Two nets on the same images are compared image by image: that tells much smaller differences from chance than two
scores with an interval each.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dmt.types import IGNORE

DRAWS = 1000
"""Bootstrap draws: enough for an interval that is printed with one decimal."""

CHANCE = 5.0
"""Percent: how often chance alone would mark any class of a comparison, not each."""

AT_ONCE = 4_000_000
"""Numbers that draws are worked on at a time: a few dozen MB, however many images there are."""

STUDENT = (6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812)
"""95 % of Student's t with 1, 2, … degrees of freedom lie below; with more than ten it is taken as with ten."""


@dataclass(frozen=True)
class Evidence:
    """The confusion of each image, as a list of its cells that are not zero.

    Attributes:
        image, truth, said, count: (K,) int32. ``count`` sites of ``image`` have this truth and were called that.
        sure: (N,) float32, of each image the sum over right sites of their probability.
        classes: how many there are.
        pixels: whether the score is mean IoU, or accuracy.
    """

    image: np.ndarray
    truth: np.ndarray
    said: np.ndarray
    count: np.ndarray
    sure: np.ndarray
    classes: int
    pixels: bool

    @property
    def images(self) -> int:
        return len(self.sure)

    def matrix(self, times: np.ndarray | None = None) -> np.ndarray:
        """(C, C) confusion; ``times`` (N,) says how often each image counts."""
        weights = self.count if times is None else self.count * times[self.image]
        cells = self.truth.astype(np.int64) * self.classes + self.said
        return np.bincount(cells, weights, self.classes**2).reshape(self.classes, self.classes)

    def score(self, times: np.ndarray | None = None) -> float:
        """Mean IoU of pixels, accuracy of images, in percent; NaN where no site has truth."""
        matrix = self.matrix(times)
        hits, totals = matrix.diagonal(), matrix.sum(1)
        if not totals.sum():
            return float("nan")
        if not self.pixels:
            return float(100.0 * hits.sum() / totals.sum())
        there = totals > 0
        return float(100.0 * (hits[there] / (totals + matrix.sum(0) - hits)[there]).mean())

    def fine_grained(self, times: np.ndarray | None = None) -> float:
        """Accuracy with every right site counted as its probability, in percent."""
        times = np.ones(self.images) if times is None else times
        total = float(self._sites() @ times)
        return float(100.0 * (self.sure.astype(np.float64) @ times) / total) if total else float("nan")

    def scores(self, times: np.ndarray, fine: bool = False) -> np.ndarray:
        """(D,) as `score`, or as `fine_grained`, for each row of ``times`` (D, N)."""
        if self.pixels and not fine:
            each = self.class_scores(times) / 100.0
            right, sites = np.nansum(each, 1), (~np.isnan(each)).sum(1).astype(np.float64)
        else:
            hits = np.bincount(self.image, self.count * (self.truth == self.said), self.images)
            right, sites = (_weighted(times, each) for each in (self.sure if fine else hits, self._sites()))
        return np.asarray(100.0 * np.divide(right, sites, out=np.full(len(times), np.nan), where=sites > 0))

    def class_scores(self, times: np.ndarray) -> np.ndarray:
        """(D, C) as `per_class`, for each row of ``times`` (D, N)."""
        right = self.truth == self.said
        hits, totals = self._by_class(times, self.truth, right), self._by_class(times, self.truth)  # (D, C) each
        whole = totals + self._by_class(times, self.said) - hits if self.pixels else totals
        return np.asarray(100.0 * np.divide(hits, whole, out=np.full_like(hits, np.nan), where=totals > 0))

    def _sites(self) -> np.ndarray:
        """(N,) sites of each image that have truth."""
        return np.bincount(self.image, self.count, self.images)

    def _by_class(self, times: np.ndarray, label: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """(D, C) sites by their ``label`` (K,) for each row of ``times`` (D, N); of these ``rows`` (K,) only."""
        rows = np.arange(len(label)) if rows is None else np.flatnonzero(rows)
        rows = rows[np.argsort(label[rows], kind="stable")]
        there, first = np.unique(label[rows], return_index=True)
        result = np.zeros((len(times), self.classes))
        step = max(1, AT_ONCE // max(len(rows), 1))
        for begin in range(0, len(times) if len(rows) else 0, step):
            some = times[begin : begin + step, self.image[rows]] * self.count[rows].astype(np.float64)  # (step, K)
            result[begin : begin + step, there] = np.add.reduceat(some, first, axis=1)
        return result

    def per_class(self) -> np.ndarray:
        """(C,) IoU of pixels, recall of images, in percent; NaN for a class without truth."""
        matrix = self.matrix()
        hits, totals = matrix.diagonal(), matrix.sum(1)
        whole = totals + matrix.sum(0) - hits if self.pixels else totals
        result = np.full(self.classes, np.nan)
        there = totals > 0
        result[there] = 100.0 * hits[there] / whole[there]
        return result

    def arrays(self) -> dict[str, np.ndarray]:
        """For a file."""
        head = np.array([self.classes, self.pixels], dtype=np.int64)
        return {name: getattr(self, name) for name in ("image", "truth", "said", "count", "sure")} | {"head": head}

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray]) -> "Evidence":
        """From a file."""
        classes, pixels = arrays["head"].tolist()
        named = {name: arrays[name] for name in ("image", "truth", "said", "count", "sure")}
        found = cls(classes=classes, pixels=bool(pixels), **named)
        found.require_possible()
        return found

    def require_possible(self) -> None:
        """Refuse numbers that no net can have caused.

        Raises:
            ValueError: for labels that are no classes, images that are not there, or sums that are not finite.
        """
        cells = (self.image, self.truth, self.said, self.count)
        if self.sure.ndim != 1 or any(each.shape != self.image.shape or each.ndim != 1 for each in cells):
            raise ValueError("evidence is lists of numbers, all of its cells of one length")
        for values, count in ((self.image, self.images), (self.truth, self.classes), (self.said, self.classes)):
            if len(values) and not 0 <= values.min() <= values.max() < count:
                raise ValueError("evidence names images or classes that are not there")
        if (len(self.count) and self.count.min() < 0) or not np.isfinite(self.sure).all():
            raise ValueError("evidence counts what cannot be counted")


class EvidenceCollector:
    """Collects evidence batch by batch."""

    def __init__(self, images: int, classes: int, pixels: bool) -> None:
        self._classes, self._pixels = classes, pixels
        self._sure = torch.zeros(images, dtype=torch.float32)
        self._cells: list[Tensor] = []  # (k, 4): image, truth, said, count

    @torch.no_grad()
    def add(self, positions: Tensor, logits: Tensor, truth: Tensor) -> None:
        """Logits (n, C, *S) of the images at these positions, and their truth (n, *S)."""
        confidence, said = logits.float().softmax(1).max(1)
        rows = torch.arange(len(truth), device=truth.device).view(-1, *[1] * (truth.dim() - 1)).expand_as(truth)
        valid = truth != IGNORE
        codes = ((rows * self._classes + truth) * self._classes + said)[valid]
        found, count = torch.unique(codes, return_counts=True)
        row, cell = found.cpu() // self._classes**2, found.cpu() % self._classes**2
        parts = (positions[row], cell // self._classes, cell % self._classes, count.cpu())
        self._cells.append(torch.stack(parts, 1).int())
        right = (confidence * (valid & (said == truth))).flatten(1) if truth.dim() > 1 else confidence * (said == truth)
        self._sure[positions] = (right.double().sum(1) if truth.dim() > 1 else right).float().cpu()

    def evidence(self) -> Evidence:
        """All that was seen."""
        cells = torch.cat(self._cells) if self._cells else torch.zeros(0, 4, dtype=torch.int32)
        image, truth, said, count = cells.T.contiguous().numpy()
        return Evidence(image, truth, said, count, self._sure.numpy(), self._classes, self._pixels)


@dataclass(frozen=True)
class Interval:
    """A number and where it lies in nine of ten draws of the images."""

    value: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether zero lies outside."""
        return self.low > 0 or self.high < 0


def apart(first: Evidence, second: Evidence) -> float:
    """The share of sites that two nets called differently: of images exact, of pixels it is at least this much."""
    mine, theirs = ((each.image.astype(np.int64) * each.classes + each.truth) * each.classes + each.said
                    for each in (first, second))  # fmt: skip
    _, here, there = np.intersect1d(mine, theirs, assume_unique=True, return_indices=True)
    same = np.minimum(first.count[here], second.count[there]).sum()
    return float(1.0 - same / first.count.sum()) if len(first.count) else 0.0


@functools.lru_cache(maxsize=2)
def draws(images: int, count: int = DRAWS, seed: int = 0) -> np.ndarray:
    """(count, images): how often each image is drawn, with putting back."""
    chance = np.random.default_rng(seed)
    times = np.empty((count, images), np.uint8)  # no image is drawn 256 times; wider numbers would fill the memory
    for row in times:
        row[:] = chance.multinomial(images, np.full(images, 1.0 / images))
    times.setflags(write=False)  # whoever asks again gets the same array
    return times


def difference(after: list[Evidence], before: list[Evidence], fine: bool = False) -> Interval:
    """Score of some nets (in the mean) less that of others on the same images, with a paired bootstrap interval.

    Args:
        fine: compare fine-grained accuracy instead of the headline score.
    """
    if any(each.images != after[0].images for each in (*after, *before)):
        raise ValueError("only evidence of the same images can be compared")
    whole = np.ones((1, after[0].images))
    return interval(float(differences(after, before, whole, fine)[0]), spread(after, before, fine))


def spread(after: list[Evidence], before: list[Evidence], fine: bool = False) -> np.ndarray:
    """(DRAWS,) the same difference on every draw of the images; equal numbers of images are drawn alike."""
    images = after[0].images
    return differences(after, before, draws(images), fine) if images else np.full(DRAWS, np.nan)


def differences(after: list[Evidence], before: list[Evidence], times: np.ndarray, fine: bool = False) -> np.ndarray:
    """(D,) for each row of ``times`` (D, N). Without nets in ``before``, the score itself."""
    first, second = ([each.scores(times, fine) for each in nets] for nets in (after, before))
    return np.asarray(np.mean(first, 0) - (np.mean(second, 0) if second else 0.0))


def interval(value: float, drawn: np.ndarray) -> Interval:
    """A number with the range of nine of ten of its draws (D,)."""
    known = drawn[~np.isnan(drawn)]
    low, high = np.percentile(known, [5.0, 95.0]) if len(known) else (np.nan, np.nan)
    return Interval(value, float(low), float(high))


def over_seeds(gains: Sequence[float], drawn: np.ndarray) -> Interval:
    """The mean gain of some seeds, with the wider of two intervals.

    Args:
        gains: of each seed.
        drawn: (seeds, D) of each seed on every draw of the images.

    Images and seeds drawn again know of all images but of too few seeds: of two or three, drawn seeds are much too
    sure. Student's interval of the gains knows how few they are, but not that all were measured on the same images.
    """
    picked = np.random.default_rng(0).integers(0, len(drawn), drawn.shape)
    mean = float(np.mean(gains))
    found = interval(mean, np.take_along_axis(drawn, picked, 0).mean(0))
    if len(gains) < 2:
        return found
    reach = STUDENT[min(len(gains) - 1, len(STUDENT)) - 1] * float(np.std(gains, ddof=1)) / len(gains) ** 0.5
    return Interval(mean, min(found.low, mean - reach), max(found.high, mean + reach))


def class_changes(after: list[Evidence], before: list[Evidence]) -> tuple[np.ndarray, np.ndarray]:
    """(C,) points that each class gained in the mean over nets, and (C,) whether that is clear.

    One chance in twenty that any class is called clear wrongly, in either direction, not that each is.
    """
    whole, times = np.ones((1, after[0].images), np.uint8), draws(after[0].images)
    change, drawn = (_class_mean(after, each) - _class_mean(before, each) for each in (whole, times))
    there = ~np.isnan(drawn).any(0)  # a class of very few images is missing from some draw: nobody can tell
    clear = np.zeros(len(there), bool)
    if there.any():
        tail = CHANCE / 2 / there.sum()
        low, high = np.percentile(drawn[:, there], [tail, 100.0 - tail], axis=0)
        clear[there] = (low > 0) | (high < 0)
    return change[0], clear


def _class_mean(nets: list[Evidence], times: np.ndarray) -> np.ndarray:
    """(D, C) in the mean over nets."""
    total = nets[0].class_scores(times)
    for net in nets[1:]:
        total += net.class_scores(times)
    return total / len(nets)


def _weighted(times: np.ndarray, values: np.ndarray) -> np.ndarray:
    """(D,) ``times`` (D, N) @ ``values`` (N,), some rows at a time: they are bytes, and would all become floats."""
    step = max(1, AT_ONCE // max(times.shape[1], 1))
    parts = [times[begin : begin + step].astype(np.float64) @ values for begin in range(0, len(times), step)]
    return np.concatenate(parts) if parts else np.zeros(0)
