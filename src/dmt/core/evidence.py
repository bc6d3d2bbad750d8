"""Compact record of a net's predictions for every image, from which scores of any resample of the images follow.

Two nets are compared on the same images with a paired bootstrap. It detects much smaller differences than comparing two
separate scores with an interval each.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dmt.types import IGNORE

DRAWS = 1000
"""Number of bootstrap draws: enough for an interval that is printed with one decimal."""

CHANCE = 5.0
"""Family-wise error rate in percent: how often chance alone would mark at least one class of a comparison."""

AT_ONCE = 4_000_000
"""Numbers per block of bootstrap draws: limits memory to a few dozen MB, however many images there are."""

STUDENT = (6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812)
"""95 % quantiles of Student's t with 1, 2, … 10 degrees of freedom; with more, the last one is used."""


@dataclass(frozen=True)
class Evidence:
    """Confusion matrices of N images, as a list of their K nonzero cells.

    Attributes:
        image, truth, said, count: (K,) int32. In image ``image``, ``count`` sites of class ``truth`` were predicted
            as class ``said``.
        sure: (N,) float32, per image, the sum of the predicted probability over its correct sites.
        classes: number of classes.
        pixels: whether sites are pixels, scored by mean IoU, or images, scored by accuracy.
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
        """Return the confusion matrix (C, C), rows truth; ``times`` (N,) is how often each image counts."""
        weights = self.count if times is None else self.count * times[self.image]
        cells = self.truth.astype(np.int64) * self.classes + self.said
        return np.bincount(cells, weights, self.classes**2).reshape(self.classes, self.classes)

    def score(self, times: np.ndarray | None = None) -> float:
        """Return mean IoU (pixels) or accuracy (images) in percent; NaN if no site has ground truth."""
        matrix = self.matrix(times)
        hits, totals = matrix.diagonal(), matrix.sum(1)
        if not totals.sum():
            return float("nan")
        if not self.pixels:
            return float(100.0 * hits.sum() / totals.sum())
        there = totals > 0
        return float(100.0 * (hits[there] / (totals + matrix.sum(0) - hits)[there]).mean())

    def fine_grained(self, times: np.ndarray | None = None) -> float:
        """Return accuracy in percent, with each correct site counted as its predicted probability instead of 1."""
        times = np.ones(self.images) if times is None else times
        total = float(self._sites() @ times)
        return float(100.0 * (self.sure.astype(np.float64) @ times) / total) if total else float("nan")

    def scores(self, times: np.ndarray, fine: bool = False) -> np.ndarray:
        """Return `score`, or `fine_grained` if ``fine``, for each row of ``times`` (D, N), as (D,)."""
        if self.pixels and not fine:
            each = self.class_scores(times) / 100.0
            right, sites = np.nansum(each, 1), (~np.isnan(each)).sum(1).astype(np.float64)
        else:
            hits = np.bincount(self.image, self.count * (self.truth == self.said), self.images)
            right, sites = (_weighted(times, each) for each in (self.sure if fine else hits, self._sites()))
        return np.asarray(100.0 * np.divide(right, sites, out=np.full(len(times), np.nan), where=sites > 0))

    def class_scores(self, times: np.ndarray) -> np.ndarray:
        """Return `per_class` for each row of ``times`` (D, N), as (D, C)."""
        right = self.truth == self.said
        hits, totals = self._by_class(times, self.truth, right), self._by_class(times, self.truth)  # (D, C) each
        whole = totals + self._by_class(times, self.said) - hits if self.pixels else totals
        return np.asarray(100.0 * np.divide(hits, whole, out=np.full_like(hits, np.nan), where=totals > 0))

    def _sites(self) -> np.ndarray:
        """Return the number of sites with ground truth in each image, (N,)."""
        return np.bincount(self.image, self.count, self.images)

    def _by_class(self, times: np.ndarray, label: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Return the number of sites per class for each row of ``times`` (D, N), as (D, C).

        Args:
            times: how often each image counts.
            label: (K,), the class that each cell counts for.
            rows: (K,) bool, the cells to count; None for all.
        """
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
        """Return IoU (pixels) or recall (images) of each class in percent, (C,); NaN for a class without truth."""
        matrix = self.matrix()
        hits, totals = matrix.diagonal(), matrix.sum(1)
        whole = totals + matrix.sum(0) - hits if self.pixels else totals
        result = np.full(self.classes, np.nan)
        there = totals > 0
        result[there] = 100.0 * hits[there] / whole[there]
        return result

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays to be written to a file; `of` reads them."""
        head = np.array([self.classes, self.pixels], dtype=np.int64)
        return {name: getattr(self, name) for name in ("image", "truth", "said", "count", "sure")} | {"head": head}

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray]) -> "Evidence":
        """Build evidence from the arrays of a file, as `arrays` returned them, and check them."""
        classes, pixels = arrays["head"].tolist()
        named = {name: arrays[name] for name in ("image", "truth", "said", "count", "sure")}
        found = cls(classes=classes, pixels=bool(pixels), **named)
        found.require_possible()
        return found

    def require_possible(self) -> None:
        """Check that the numbers are possible.

        Raises:
            ValueError: if arrays do not fit together, classes or images are out of range, counts are negative, or
                probability sums are not finite.
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
        """Add a batch.

        Args:
            positions: (n,) of the images among all, on the host.
            logits: (n, C, *S).
            truth: (n, *S), ``IGNORE`` where there is none.
        """
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
        """Return the evidence of all batches added so far."""
        cells = torch.cat(self._cells) if self._cells else torch.zeros(0, 4, dtype=torch.int32)
        image, truth, said, count = cells.T.contiguous().numpy()
        return Evidence(image, truth, said, count, self._sure.numpy(), self._classes, self._pixels)


@dataclass(frozen=True)
class Interval:
    """A number with its 90 % bootstrap interval."""

    value: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether zero lies outside of the interval."""
        return self.low > 0 or self.high < 0


def apart(first: Evidence, second: Evidence) -> float:
    """Return the share of sites that two nets predict differently: exact for images, a lower bound for pixels."""
    mine, theirs = ((each.image.astype(np.int64) * each.classes + each.truth) * each.classes + each.said
                    for each in (first, second))  # fmt: skip
    _, here, there = np.intersect1d(mine, theirs, assume_unique=True, return_indices=True)
    same = np.minimum(first.count[here], second.count[there]).sum()
    return float(1.0 - same / first.count.sum()) if len(first.count) else 0.0


@functools.lru_cache(maxsize=2)
def draws(images: int, count: int = DRAWS, seed: int = 0) -> np.ndarray:
    """Return how often each image occurs in each bootstrap draw, (count, images) uint8, read-only and cached."""
    chance = np.random.default_rng(seed)
    times = np.empty((count, images), np.uint8)  # no image is ever drawn 256 times, and wider types take more memory
    for row in times:
        row[:] = chance.multinomial(images, np.full(images, 1.0 / images))
    times.setflags(write=False)  # the cache returns the same array to every caller
    return times


def difference(after: list[Evidence], before: list[Evidence], fine: bool = False) -> Interval:
    """Return the mean score of some nets minus that of others on the same images, with a paired bootstrap interval.

    Args:
        after: evidence of the nets whose score counts positively.
        before: evidence of the nets to subtract.
        fine: compare fine-grained accuracy instead of the main score.
    """
    if any(each.images != after[0].images for each in (*after, *before)):
        raise ValueError("only evidence of the same images can be compared")
    whole = np.ones((1, after[0].images))
    return interval(float(differences(after, before, whole, fine)[0]), spread(after, before, fine))


def spread(after: list[Evidence], before: list[Evidence], fine: bool = False) -> np.ndarray:
    """Return the same difference on every bootstrap draw, (DRAWS,); draws depend on the number of images alone."""
    images = after[0].images
    return differences(after, before, draws(images), fine) if images else np.full(DRAWS, np.nan)


def differences(after: list[Evidence], before: list[Evidence], times: np.ndarray, fine: bool = False) -> np.ndarray:
    """Return the same difference for each row of ``times`` (D, N), as (D,); the score itself if ``before`` is empty."""
    first, second = ([each.scores(times, fine) for each in nets] for nets in (after, before))
    return np.asarray(np.mean(first, 0) - (np.mean(second, 0) if second else 0.0))


def interval(value: float, drawn: np.ndarray) -> Interval:
    """Return a number with the interval from the 5 % to the 95 % quantile of its bootstrap draws (D,)."""
    known = drawn[~np.isnan(drawn)]
    low, high = np.percentile(known, [5.0, 95.0]) if len(known) else (np.nan, np.nan)
    return Interval(value, float(low), float(high))


def over_seeds(gains: Sequence[float], drawn: np.ndarray) -> Interval:
    """Return the mean gain over seeds, with an interval that covers two: bootstrap, and Student's t over the seeds.

    Bootstrapping images and seeds accounts for the images, but with two or three seeds it is much too narrow.
    Student's interval of the gains accounts for the small number of seeds, but not for the test images that they share.

    Args:
        gains: gain of each seed.
        drawn: (seeds, D), gain of each seed on every bootstrap draw of the images.
    """
    picked = np.random.default_rng(0).integers(0, len(drawn), drawn.shape)
    mean = float(np.mean(gains))
    found = interval(mean, np.take_along_axis(drawn, picked, 0).mean(0))
    if len(gains) < 2:
        return found
    reach = STUDENT[min(len(gains) - 1, len(STUDENT)) - 1] * float(np.std(gains, ddof=1)) / len(gains) ** 0.5
    return Interval(mean, min(found.low, mean - reach), max(found.high, mean + reach))


def class_changes(after: list[Evidence], before: list[Evidence]) -> tuple[np.ndarray, np.ndarray]:
    """Return the points that each class gained in the mean over nets, (C,), and whether each gain is clear, (C,) bool.

    The probability that any class is called clear by chance, in either direction, is at most one in twenty
    (Bonferroni correction over the classes).
    """
    whole, times = np.ones((1, after[0].images), np.uint8), draws(after[0].images)
    change, drawn = (_class_mean(after, each) - _class_mean(before, each) for each in (whole, times))
    there = ~np.isnan(drawn).any(0)  # a class with very few images is missing from some draws: no interval
    clear = np.zeros(len(there), bool)
    if there.any():
        tail = CHANCE / 2 / there.sum()
        low, high = np.percentile(drawn[:, there], [tail, 100.0 - tail], axis=0)
        clear[there] = (low > 0) | (high < 0)
    return change[0], clear


def _class_mean(nets: list[Evidence], times: np.ndarray) -> np.ndarray:
    """Return the class scores for each row of ``times`` (D, N) in the mean over nets, (D, C)."""
    total = nets[0].class_scores(times)
    for net in nets[1:]:
        total += net.class_scores(times)
    return total / len(nets)


def _weighted(times: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return ``times`` (D, N) @ ``values`` (N,) as (D,), in blocks of rows, since the bytes are converted to floats."""
    step = max(1, AT_ONCE // max(times.shape[1], 1))
    parts = [times[begin : begin + step].astype(np.float64) @ values for begin in range(0, len(times), step)]
    return np.concatenate(parts) if parts else np.zeros(0)
