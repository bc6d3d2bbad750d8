"""Trials of rounds on folds of the labels, to choose γ and the number of rounds, if any."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from dmt.config import Config
from dmt.core import streams
from dmt.core.evidence import Evidence
from dmt.methods import catalogue
from dmt.own import folds, trials
from dmt.own.trials import Trials, Tried
from dmt.tasks.base import Task

GAMMAS = (0.5, 5.0)
"""Values of γ tried in addition to the proposed one."""

PARTS = 3
"""Number of folds for rounds with masks. Only one is evaluated, since each of the others would cost as much again."""

LONGEST = (120, 300)
"""Maximum number of steps per stage in a trial with masks, on a CPU and on a GPU."""

POOL = 300
"""Maximum number of unlabeled images in a trial with masks."""


@dataclass(frozen=True)
class TrialRounds:
    """Result of trying a method's rounds on folds.

    Attributes:
        chosen: options to use for the rounds of a run.
        told: text for the user.
        said: evidence of the Baseline and of each later stage up to the last chosen round; empty if nothing was tried.
        helps: whether rounds are worth training, that is, do at least as well as the Baseline.
        short: maximum number of steps per stage in the trial if stages of the run are longer, else None.
    """

    chosen: Tried
    told: list[str]
    said: list[Evidence]
    helps: bool = True
    short: int | None = None


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


def of_masks(
    at: Trials, config: Config, method: str, chosen: Tried, fixed: Collection[str], large: bool
) -> TrialRounds:
    """Choose the number of rounds for segmentation, in one trial with shorter stages and fewer unlabeled images.

    The best number is taken even if it is not clearly better, since there is no prior on whether rounds help. If none
    helps, one round is kept for comparison.
    """
    recipe, task = config.recipe, some_unlabeled(at.folds.task)
    part = folds.split(task.labeled, PARTS, seed=0, purpose="rounds")[:1]
    beside = Trials(replace(at.folds, task=task, parts=part), "AB", LONGEST[large], at.tried)
    rounds = beside.rounds(method, config, {**chosen.settings, **_as_long(config, at.folds.task, task)})
    if rounds is None:
        return TrialRounds(chosen, [], [])
    before = _before(rounds, config)
    scores = [each.score() for each in rounds]
    # ties go to the later stage; even if no round improves on the online stage, one round follows it
    best = max(range(before - 1, len(rounds)), key=lambda place: (scores[place], place)) - (before - 1)
    helps = scores[before - 1 + max(best, 1)] >= scores[0]
    settings = dict(chosen.settings)
    if best < len(recipe.fractions) and "fractions" not in fixed and not recipe.lists:
        settings["fractions"] = recipe.fractions[: max(best, 1)]
    used = rounds[: before + max(best, 1)] if helps else rounds[:1]
    longer = any(
        stage.steps(at.folds.task.sizes(0)) > LONGEST[large] for stage in catalogue.plan(method, recipe).stages
    )
    told = [_told(scores, before, best, len(part[0]))]
    return TrialRounds(Tried(settings, used[-1]), told, used, helps, LONGEST[large] if longer else None)


def _told(scores: Sequence[float], before: int, best: int, images: int) -> str:
    """Describe the scores of a trial, stage by stage."""
    without, *online = (f"{each:.1f}" for each in scores[:before])
    after = ", ".join(f"{each:.1f}" for each in scores[before:])
    first = f"{without} without" + "".join(f", {each} after the online stage" for each in online)
    return f"{best} of {len(scores) - before} rounds: {first}, then {after} ({images} held-out images)"


def some_unlabeled(task: Task) -> Task:
    """Return the task with a random sample of at most `POOL` unlabeled images."""
    count = len(task.unlabeled)
    if count <= POOL:
        return task
    order = streams.stream("trial", "unlabeled").permutation(count)[:POOL]
    some: Any = task
    return replace(some, unlabeled=task.unlabeled.take(torch.from_numpy(order).sort().values))  # type: ignore[no-any-return]


def _as_long(config: Config, whole: Task, some: Task) -> dict[str, Any]:
    """Return options that scale the epochs so that they take as many steps with fewer unlabeled images."""
    recipe, times = config.recipe, len(whole.unlabeled) / max(len(some.unlabeled), 1)
    if times == 1.0:
        return {}
    epochs = recipe.epochs_round
    many = tuple(round(times * each) for each in epochs) if isinstance(epochs, tuple) else round(times * epochs)
    longer: dict[str, Any] = {"epochs_round": many}
    if recipe.online_stage != "none":
        longer["epochs_online_stage"] = round(times * recipe.epochs_online_stage)
    return longer
