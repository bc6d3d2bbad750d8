"""Trials of rounds of last layers on folds of the labels, to choose γ and the number of rounds."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from dmt.config import Config
from dmt.core.evidence import Evidence
from dmt.methods import catalogue
from dmt.own import trials
from dmt.own.trials import Trials, Tried

GAMMAS = (0.5, 5.0)
"""Values of γ tried in addition to the proposed one."""


@dataclass(frozen=True)
class TrialRounds:
    """Result of trying a method's rounds on folds.

    Attributes:
        chosen: options to use for the rounds of a run.
        told: text for the user.
        said: evidence of the Baseline and of each later stage up to the last chosen round; empty if nothing was tried.
    """

    chosen: Tried
    told: list[str]
    said: list[Evidence]


def method_of(methods: Sequence[str]) -> str | None:
    """Return the method whose rounds are tried: the default one if it is among these, else None."""
    usual = catalogue.default().name
    return usual if usual in methods else None


def of_layers(at: Trials, config: Config, method: str, chosen: Tried, fixed: Collection[str]) -> TrialRounds:
    """Choose γ and the number of rounds for last layers, which train in a second, in full-length trials."""
    recipe = config.recipe
    rounds = at.rounds(method, config, chosen.settings)
    if rounds is None:
        return TrialRounds(chosen, [], [])
    told = []
    known = {recipe.gamma: (Tried(chosen.settings, rounds[-1]), rounds)}
    if "gamma" not in fixed and not isinstance(recipe.gamma, tuple):
        for gamma in GAMMAS:
            settings = {**chosen.settings, "gamma": gamma}
            found = at.rounds(method, config, settings)
            if found is not None:
                known[gamma] = Tried(settings, found[-1]), found
    best = trials.choose(known[recipe.gamma][0], [each for each, _ in known.values()])
    rounds = next(found for each, found in known.values() if each is best)
    if len(known) > 1:
        scores = {str(gamma): known[gamma][0].score for gamma in sorted(known, key=str)}
        told.append(trials.told("gamma", str(recipe.gamma), str(best.settings.get("gamma", recipe.gamma)), scores))
    settings = dict(best.settings)
    if "fractions" not in fixed and not recipe.lists:
        before = _before(rounds, config)
        last = fewer(rounds[before - 1 :])
        if last < len(recipe.fractions):
            settings = {**settings, "fractions": recipe.fractions[:last]}
            told.append(f"{last} of {len(recipe.fractions)} rounds: later ones lose")
            rounds = rounds[: before + last]
    return TrialRounds(Tried(settings, rounds[-1]), told, rounds)


def _before(stages: Sequence[Evidence], config: Config) -> int:
    """Return how many stages precede the first round: that of the first nets, and possibly an online stage."""
    return len(stages) - len(config.recipe.fractions)


def fewer(rounds: Sequence[Evidence]) -> int:
    """Return after how many rounds to stop: after all, unless an earlier one is clearly better than the last.

    Args:
        rounds: evidence before the first round, then after each round.
    """
    later = list(range(1, len(rounds)))
    best = max(later, key=lambda number: rounds[number].score())
    return best if trials.clearly_better(rounds[best], rounds[-1]) else later[-1]
