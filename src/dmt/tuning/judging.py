"""Which setting is better, and which only looks so: trials compared on the same validation images, image by image."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dmt.core import evidence
from dmt.core.evidence import Evidence, Interval
from dmt.results import guard_rules

SURE = 0.9
"""All intervals of one comparison hold together in so many of the draws."""

COARSE = 2.0
"""Points. Where even this much is indistinguishable from chance, the validation set is too small to tune on."""


ROUNDING = 1e-9
"""Means of the same numbers in another order may differ by less than this."""


@dataclass(frozen=True)
class Verdict:
    """What the validation images say of some trials.

    Attributes:
        scores: (T,) of each trial, in the mean over seeds.
        over_default: of each trial its score less that of the default; NaN if that could not be trained.
        over_best: of each trial its score less the best one's.
        best: the trial with the highest score.
        chosen: the best of those that are clearly better than the default and not less often right; the default if
            there is none, or if there are too few images to tell.
        least: points that a difference must have, about, to be told from chance.
        accuracies: (T,) of each trial, in the mean over seeds; of pixels, mean IoU.
        surer: trials with a clearly better score than the default, but a lower accuracy.
        few: whether there are too few images to choose by.
    """

    scores: tuple[float, ...]
    over_default: tuple[Interval, ...]
    over_best: tuple[Interval, ...]
    best: int
    chosen: int
    least: float
    accuracies: tuple[float, ...]
    surer: tuple[int, ...] = ()
    few: bool = False


def judge(trials: Sequence[Sequence[Evidence]], fine: bool, default: int | None = 0) -> Verdict:
    """Compare trials with each other.

    Args:
        trials: of each trial what its net said of the validation images, seed by seed.
        fine: by fine-grained accuracy instead of the headline score.
        default: which of the trials it is; None if it could not be trained, so that any other is better.
    """
    scores, draws = zip(*(_drawn(each, fine) for each in trials), strict=True)
    values, spread = np.array(scores), np.stack(draws)  # (T,) and (T, D)
    accuracies = tuple(float(np.mean([net.score() for net in nets])) for nets in trials)
    few = min(net.images for nets in trials for net in nets) < guard_rules.FEW
    best = int(values.argmax())
    over_best = _together(values, spread, best)
    least = float(np.median([(each.high - each.low) / 2 for n, each in enumerate(over_best) if n != best] or [np.nan]))
    if default is None:
        unknown = (Interval(np.nan, np.nan, np.nan),) * len(scores)
        return Verdict(tuple(scores), unknown, over_best, best, best, least, accuracies, few=few)
    over_default = _together(values, spread, default)
    better = [number for number, interval in enumerate(over_default) if interval.low > 0]
    # right answers that are surer raise fine-grained accuracy too: that alone is no reason to leave the default
    surer = tuple(number for number in better if accuracies[number] < accuracies[default] - ROUNDING)
    open_ = [] if few else [number for number in better if number not in surer]
    chosen = max(open_, key=lambda number: float(values[number]), default=default)
    return Verdict(tuple(scores), over_default, over_best, best, chosen, least, accuracies, surer, few)


def _drawn(nets: Sequence[Evidence], fine: bool) -> tuple[float, np.ndarray]:
    """The score in the mean over seeds, and (D,) what it is over other draws of the images and of the seeds.

    All trials see the same draws: that pairs them. One draw of the images serves all seeds, so that it is right too
    where they validate on the same images.
    """
    by_seed = np.stack([net.scores(evidence.draws(net.images), fine) for net in nets])  # (S, D)
    seeds = np.random.default_rng(1).integers(len(nets), size=by_seed.shape)
    score = np.mean([net.fine_grained() if fine else net.score() for net in nets])
    return float(score), np.take_along_axis(by_seed, seeds, 0).mean(0)


def _together(values: np.ndarray, draws: np.ndarray, reference: int) -> tuple[Interval, ...]:
    """Differences from one trial, with intervals that hold all at once.

    The best of many trials is the luckiest too: an interval made for one comparison alone would let noise win sooner
    or later. Here the widest deviation of each draw, in standard errors, decides how wide all intervals are.
    """
    difference = values - values[reference]  # (T,)
    deviation = draws - draws[reference] - difference[:, None]  # (T, D)
    deviation = np.nan_to_num(deviation)  # a draw without a single label says nothing
    error = deviation.std(1)
    relative = np.abs(deviation) / np.where(error > 0, error, 1.0)[:, None]
    reach = np.quantile(relative.max(0), SURE)
    return tuple(
        Interval(float(value), float(value - reach * each), float(value + reach * each))
        for value, each in zip(difference, error, strict=True)
    )
