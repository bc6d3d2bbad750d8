"""Methods compared with each other: by how much the best is better than each of the others, and if that may be chance.

Methods are compared on the same labels, seeds and images. The Baseline and the ceiling are left out: gains are over the
one, and the other learns from labels that the others do not have. Of several equally good methods, one is the best by
chance, so intervals become wider with the number of methods.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from dmt.core.evidence import Interval
from dmt.methods import catalogue
from dmt.results import guard
from dmt.results.guard import Pair
from dmt.results.job_results import JobResult

RANGE = {2: 2.326, 3: 2.902, 4: 3.240, 5: 3.478, 7: 3.808, 10: 4.129, 15: 4.468, 20: 4.694, 30: 4.997, 50: 5.357}
"""90 % quantiles of the range (maximum minus minimum) of so many standard normal numbers."""

WORDS = {True: "yes", False: "no", None: "–"}
"""What a table says about whether a difference is more than chance."""


@dataclass(frozen=True)
class Comparison:
    """A method over another.

    Attributes:
        method, other: names of both.
        points: points by seed, as in `guard.difference`.
        interval: the mean of the points with its interval, see `widened`; None without evidence.
        single: whether single nets are compared, since not both methods have an ensemble of two.
        same: whether both use the very same nets, so that the difference is 0 by construction.
    """

    method: str
    other: str
    points: dict[int, float]
    interval: Interval | None
    single: bool
    same: bool

    @property
    def mean(self) -> float:
        return statistics.fmean(self.points.values())

    @property
    def clear(self) -> bool | None:
        """Whether the difference is more than chance; None if that is unknown."""
        return None if self.interval is None else self.interval.clear

    @property
    def told(self) -> str:
        """Whether the difference is more than chance, as a table says it."""
        return "same nets" if self.same else WORDS[self.clear]


def paired(jobs: Iterable[JobResult], others: Iterable[JobResult]) -> list[Pair]:
    """Pair the finished jobs of two methods by seed."""
    after, before = ({job.seed: job for job in side if job.finished} for side in (jobs, others))
    return [(job, before[seed]) for seed, job in sorted(after.items()) if seed in before]


def compare(pairs: Sequence[Pair], methods: int = 2) -> Comparison:
    """Compare two methods.

    Args:
        pairs: a job of the first method and one of the second for each of one or more seeds.
        methods: number of methods among which the first was chosen as the best.
    """
    job, other = pairs[0]
    points = {first.seed: guard.difference(first, second) for first, second in pairs}
    single = not all(guard.same_rule(*pair) for pair in pairs)
    same = all(_nets(pair, 0) == _nets(pair, 1) for pair in pairs)
    change = guard.mean_gain(pairs)
    interval = None if change is None else widened(change, methods)
    return Comparison(job.method, other.method, points, interval, single, same)


def widened(found: Interval, methods: int) -> Interval:
    """Return the interval of a difference, widened so that those of all pairs of so many methods hold at once.

    This is Tukey's correction, by quantiles of the range; for two methods, the interval stays as it is.
    """
    counts, quantiles = np.log(list(RANGE)), list(RANGE.values())
    factor = float(np.interp(np.log(methods), counts, quantiles)) / quantiles[0]
    low, high = (found.value + factor * (end - found.value) for end in (found.low, found.high))
    return Interval(found.value, low, high) if factor > 1 else found


def _nets(pair: Pair, side: int) -> list[tuple[str, str]]:
    """Return the folder and the copy of each net that one side of a comparison consists of."""
    return [(stage.place, copy) for net in guard.sides(*pair)[side] for stage, copy in net.nets]


def of_best(jobs: Iterable[JobResult]) -> list[Comparison]:
    """Compare the best method with each of the others, the closest first; empty unless two have a seed in common.

    The best is the one with the highest mean score of its final models over the seeds that all methods have finished
    or, if there are none, over its own seeds.

    Args:
        jobs: jobs that differ only in method and seed.
    """
    methods: dict[str, dict[int, JobResult]] = {}
    for job in jobs:
        if catalogue.get(job.method).compared and job.finished and not math.isnan(job.test_score("shipped")):
            methods.setdefault(job.method, {})[job.seed] = job
    if len(methods) < 2:
        return []
    common = reduce(set.intersection, (set(each) for each in methods.values()))

    def score(method: str) -> float:
        found = methods[method]
        return statistics.fmean(found[seed].test_score("shipped") for seed in common or found)

    best = max(methods, key=score)
    others = (paired(methods[best].values(), methods[other].values()) for other in methods if other != best)
    return sorted((compare(pairs, len(methods)) for pairs in others if pairs), key=lambda each: each.mean)
