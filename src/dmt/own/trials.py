"""Trials of options on folds of the labels, and the criterion for preferring one to another."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dmt import config as configuration
from dmt.config import Config
from dmt.core import evidence
from dmt.core.evidence import Evidence
from dmt.methods import catalogue
from dmt.own import folds
from dmt.own.folds import Folds

LEARNED = 0.1
"""Part of the way from the score of a constant prediction to 100 that trials must reach if they are cut short.

Before that, the highest rate is ahead whichever is best in the end.
"""


@dataclass(frozen=True)
class Tried:
    """Options, and the predictions on held-out images by nets trained with them."""

    settings: Mapping[str, Any]
    said: Evidence
    method: str = ""

    @property
    def score(self) -> float:
        return self.said.score()


@dataclass(frozen=True)
class Trials:
    """Trials on the same folds, so that they can be compared image by image.

    Attributes:
        lines: the lines to train.
        longest: maximum number of steps per stage; None for no limit.
        tried: all trials so far, in order.
    """

    folds: Folds
    lines: str
    longest: int | None
    tried: list[Tried] = field(default_factory=list)

    def baseline(self, config: Config, settings: Mapping[str, Any]) -> Tried | None:
        """Try the Baseline with some options changed; return None if training diverges."""
        found = self._try(config, settings, catalogue.baseline().name)
        return None if found is None else self.tried[-1]

    def rounds(self, method: str, config: Config, settings: Mapping[str, Any]) -> list[Evidence] | None:
        """Try the whole plan of a method; return the evidence after each round, or None if training diverges."""
        return self._try(config, settings, method)

    def _try(self, config: Config, settings: Mapping[str, Any], method: str) -> list[Evidence] | None:
        changed = configuration.override(config, settings)
        found = folds.tried(self.folds, changed, method, lines=self.lines, longest=self.longest)
        if found is not None:
            self.tried.append(Tried(dict(settings), found[-1], method))
        return found


def choose(proposed: Tried, known: Sequence[Tried]) -> Tried:
    """Return the best trial if it is clearly better than the proposed one, else the proposed one."""
    best = max(known, key=lambda each: each.score)
    return best if clearly_better(best.said, proposed.said) else proposed


def learned(known: Iterable[Tried]) -> bool:
    """Return whether any of these has learned clearly more than to predict the most frequent class everywhere."""
    return any(_above_constant(each.said) >= LEARNED for each in known)


def _above_constant(said: Evidence) -> float:
    """Return how far the score is from that of a constant prediction, 0, to being always right, 1."""
    constant = replace(said, said=np.full_like(said.said, said.matrix().sum(1).argmax())).score()
    return (said.score() - constant) / max(100.0 - constant, 1e-9)


def told(key: str, proposed: str, chosen: str, scores: Mapping[str, float], early: str = "") -> str:
    """Describe the choice between some values of an option.

    Args:
        scores: the score of each value, by the value as text.
        early: why nothing was chosen, if the trials were too short; else empty.
    """
    said = ", ".join(f"{value}: {score:.1f}" for value, score in scores.items())
    if early:
        return f"{key}={proposed} stays, {early} ({said})"
    if chosen == proposed:
        return f"{key}={proposed} stays, nothing tried is clearly better ({said})"
    return f"{key}={chosen} instead of {proposed}, clearly better ({said})"


def clearly_better(after: Evidence, before: Evidence) -> bool:
    """Return whether the score is higher in 19 of 20 bootstrap draws of the images.

    The criterion is strict because the best of several trials is easily better by chance.
    """
    return evidence.difference([after], [before]).low > 0
