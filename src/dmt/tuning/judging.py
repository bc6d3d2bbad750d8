"""Which setting is better by more than chance: trials compared on the same validation images, image by image."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dmt.core import evidence
from dmt.core.evidence import Evidence, Interval
from dmt.results import guard_rules

SURE = 0.9
"""Share of the draws in which all intervals of one comparison hold at once."""

COARSE = 2.0
"""Points: if a difference of this size cannot be told from chance, the validation set is too small to tune on."""


ROUNDING = 1e-9
"""Tolerance in points: means of the same numbers in another order differ by less than this."""


@dataclass(frozen=True)
class Verdict:
    """Comparison of some trials on the validation images.

    Attributes:
        scores: (T,) score of each trial, averaged over seeds.
        over_default: (T,) score of each trial minus that of the default; NaN if the default could not be trained.
        over_best: (T,) score of each trial minus that of the best one.
        best: index of the trial with the highest score.
        chosen: index of the best trial among those that are clearly better than the default and not less accurate; the
            default if there is none, or if there are too few images to tell.
        least: about the smallest difference, in points, that can be told from chance.
        accuracies: (T,) accuracy of each trial, averaged over seeds; for segmentation, mean IoU.
        surer: indices of trials with a clearly better score than the default, but a lower accuracy.
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
        trials: for each trial, the predictions of its final models on the validation images, seed by seed.
        fine: compare fine-grained accuracy instead of the headline score.
        default: index of the default; None if it could not be trained, so that the best trial is chosen.
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
    # more confidence in right answers raises fine-grained accuracy too, but is no reason to leave the default
    surer = tuple(number for number in better if accuracies[number] < accuracies[default] - ROUNDING)
    open_ = [] if few else [number for number in better if number not in surer]
    chosen = max(open_, key=lambda number: float(values[number]), default=default)
    return Verdict(tuple(scores), over_default, over_best, best, chosen, least, accuracies, surer, few)


def _drawn(nets: Sequence[Evidence], fine: bool) -> tuple[float, np.ndarray]:
    """Return the score averaged over seeds, and the same on draws of the images and of the seeds, (D,).

    All trials use the same draws, which pairs them. One draw of the images serves all seeds, which is right also
    if the seeds have the same validation images.
    """
    by_seed = np.stack([net.scores(evidence.draws(net.images), fine) for net in nets])  # (S, D)
    seeds = np.random.default_rng(1).integers(len(nets), size=by_seed.shape)
    score = np.mean([net.fine_grained() if fine else net.score() for net in nets])
    return float(score), np.take_along_axis(by_seed, seeds, 0).mean(0)


def _together(values: np.ndarray, draws: np.ndarray, reference: int) -> tuple[Interval, ...]:
    """Return the differences of all trials from one of them, with intervals that hold all at once.

    The best of many trials is also the luckiest: with an interval made for each comparison alone, noise would win
    sooner or later. Here the largest deviation of each draw, in standard errors, determines the width of all intervals.
    """
    difference = values - values[reference]  # (T,)
    deviation = draws - draws[reference] - difference[:, None]  # (T, D)
    deviation = np.nan_to_num(deviation)  # a draw without a single label (NaN) says nothing
    error = deviation.std(1)
    relative = np.abs(deviation) / np.where(error > 0, error, 1.0)[:, None]
    reach = np.quantile(relative.max(0), SURE)
    return tuple(
        Interval(float(value), float(value - reach * each), float(value + reach * each))
        for value, each in zip(difference, error, strict=True)
    )
