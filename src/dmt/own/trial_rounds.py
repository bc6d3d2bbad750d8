"""Rounds tried on folds of the labels: what γ they should have, and how many there should be, if any."""

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
"""Beside the one that a schedule proposes."""

PARTS = 3
"""Rounds of masks are judged on one of so many parts of the labels; each of the others would cost as much again."""

LONGEST = (120, 300)
"""Steps of a stage of masks in a trial, on a CPU and on a GPU."""

POOL = 300
"""Unlabeled images of masks in a trial."""


@dataclass(frozen=True)
class TrialRounds:
    """What folds say of a method's rounds.

    Attributes:
        chosen: options that the rounds of a run should have.
        told: for a user to read.
        said: what nets said round by round, the first before any; empty if nothing was tried.
        helps: whether rounds are worth it.
    """

    chosen: Tried
    told: list[str]
    said: list[Evidence]
    helps: bool = True


def method_of(methods: Sequence[str]) -> str | None:
    """The method whose rounds are tried."""
    usual = catalogue.default().name
    return usual if usual in methods else None


def of_layers(at: Trials, config: Config, method: str, chosen: Tried, fixed: Collection[str]) -> TrialRounds:
    """Of last layers, which learn in a second: γ and the number of rounds, tried in full."""
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
    """How many stages come before the first round: first nets, and maybe an online stage."""
    return len(stages) - len(config.recipe.fractions)


def fewer(rounds: Sequence[Evidence]) -> int:
    """After how many rounds to end: all of them, unless an earlier one was clearly better."""
    later = list(range(1, len(rounds)))
    best = max(later, key=lambda number: rounds[number].score())
    return best if trials.clearly_better(rounds[best], rounds[-1]) else later[-1]


def of_masks(
    at: Trials, config: Config, method: str, chosen: Tried, fixed: Collection[str], large: bool
) -> TrialRounds:
    """Of nets that label pixels: how many rounds, tried once with shorter stages and fewer unlabeled images.

    The number that does best is taken: nobody can tell beforehand whether rounds help. If none does, one is left for
    comparison.
    """
    recipe, task = config.recipe, some_unlabeled(at.folds.task)
    part = folds.split(task.labeled, PARTS, seed=0, purpose="rounds")[:1]
    beside = Trials(replace(at.folds, task=task, parts=part), "AB", LONGEST[large], at.tried)
    rounds = beside.rounds(method, config, {**chosen.settings, **_as_long(config, at.folds.task, task)})
    if rounds is None:
        return TrialRounds(chosen, [], [])
    before = _before(rounds, config)
    scores = [each.score() for each in rounds]
    # of equals the later; an online stage that no round improves on is still followed by one
    best = max(range(before - 1, len(rounds)), key=lambda place: (scores[place], place)) - (before - 1)
    helps = scores[before - 1 + max(best, 1)] >= scores[0]
    settings = dict(chosen.settings)
    if best < len(recipe.fractions) and "fractions" not in fixed and not recipe.lists:
        settings["fractions"] = recipe.fractions[: max(best, 1)]
    used = rounds[: before + max(best, 1)] if helps else rounds[:1]
    return TrialRounds(Tried(settings, used[-1]), [_told(scores, before, best, len(part[0]))], used, helps)


def _told(scores: Sequence[float], before: int, best: int, images: int) -> str:
    """The scores of a trial, stage by stage."""
    without, *online = (f"{each:.1f}" for each in scores[:before])
    after = ", ".join(f"{each:.1f}" for each in scores[before:])
    first = f"{without} without" + "".join(f", {each} after the online stage" for each in online)
    return f"{best} of {len(scores) - before} rounds: {first}, then {after} ({images} held-out images)"


def some_unlabeled(task: Task) -> Task:
    """The task with no more unlabeled images than a trial needs."""
    count = len(task.unlabeled)
    if count <= POOL:
        return task
    order = streams.stream("trial", "unlabeled").permutation(count)[:POOL]
    some: Any = task
    return replace(some, unlabeled=task.unlabeled.take(torch.from_numpy(order).sort().values))  # type: ignore[no-any-return]


def _as_long(config: Config, whole: Task, some: Task) -> dict[str, Any]:
    """Epochs that take as many steps over fewer images."""
    recipe, times = config.recipe, len(whole.unlabeled) / max(len(some.unlabeled), 1)
    if times == 1.0:
        return {}
    epochs = recipe.epochs_round
    many = tuple(round(times * each) for each in epochs) if isinstance(epochs, tuple) else round(times * epochs)
    longer: dict[str, Any] = {"epochs_round": many}
    if recipe.online_stage != "none":
        longer["epochs_online_stage"] = round(times * recipe.epochs_online_stage)
    return longer
