"""Search by cross-validation on a folder's labels, before the run: learning rate, length, γ, rounds and method."""

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dmt import config as configuration
from dmt.config import Config
from dmt.core.execution import Execution
from dmt.methods import catalogue
from dmt.own import class_weights, findings, folds, search_cost, trial_rounds, trials
from dmt.own.findings import Found
from dmt.own.fine_tuning import FineTuning
from dmt.own.folds import Folds
from dmt.own.search_cost import HALVES, LONGER, OTHERS, SHORT, THIRDS
from dmt.own.trial_rounds import TrialRounds
from dmt.own.trials import Trials, Tried
from dmt.runs.starting import Starts
from dmt.tasks.base import Task

FACTORS = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Multiples of the proposed learning rate.

The neighbors of 1 are tried first, then the one beyond the better neighbor if that beats 1.
"""


class _OutOfTimeError(Exception):
    """A search has used up its time."""


@dataclass(frozen=True)
class Search:
    """Search for options by cross-validation on the labels of a task.

    Attributes:
        config: the proposed configuration, which the search starts from.
        methods: the methods that the run will train.
        fixed: options set by the user, which are not changed.
        tell: is called after every step with the number of steps done and an upper bound of their total; it may raise
            to stop the search.
        patience: time limit in seconds. If the first trials do not finish in time, the schedule stays as proposed;
            later trials are skipped.
        tuning: configuration and task for fine-tuning whole nets, compared with training last layers; None to skip.
        others: methods that may replace the default one, tried with fine-tuned nets.
    """

    config: Config
    task: Task
    starts: Starts
    execution: Execution
    methods: Sequence[str]
    fixed: Collection[str] = ()
    tell: Callable[[int, int], None] = lambda done, of: None
    patience: float = math.inf
    tuning: FineTuning | None = None
    others: Sequence[str] = ()

    def run(self) -> Found:
        """Return what cross-validation prefers; no settings if there are too few labels or too little time."""
        try:
            return self._run()
        except _OutOfTimeError:
            return Found(
                lines=("cross-validation: no time for it within the budget, so the schedule stays as proposed",)
            )

    def _run(self) -> Found:
        began, cheap = time.monotonic(), self.config.stores_features("A")
        count = folds.most(self.task.labeled, THIRDS if cheap else HALVES)
        if count < 2 or len(self.task.labeled) < folds.FEWEST:
            return Found()
        longest = None if cheap else SHORT[self.execution.on_cuda]
        at = Trials(self._folds(count), "AB" if cheap else "A", longest)
        first = at.baseline(self.config, {})
        if first is None:
            return Found()
        chosen, told = self._rate(at, first)
        if cheap:
            chosen, told = self._length(at, chosen, told)
            tuned, told = self._tuned(at, chosen, told, began)
            if tuned is not None:
                return self._another_method(at, tuned)
        else:
            chosen, told = self._class_weights(at, chosen, told)
        rounds = self._rounds(at, chosen) if cheap else TrialRounds(chosen, [], [])
        return self._another_method(at, findings.of_trials(at, rounds, [*told, *rounds.told], self.methods))

    def _folds(self, count: int) -> Folds:
        execution = replace(self.execution, compiles=False)
        planned = search_cost.plans(self.config, self.methods, len(self.task.labeled), self.execution.on_cuda)
        of = round(sum(steps for _, steps in planned)) + self._steps_of_tuning(count)
        done, end = 0, time.monotonic() + self.patience

        def step() -> None:
            nonlocal done
            done += 1
            if time.monotonic() > end:
                raise _OutOfTimeError
            self.tell(min(done, of), of)

        return Folds(self.task, self.starts, execution, folds.split(self.task.labeled, count, seed=0), step)

    def _steps_of_tuning(self, count: int) -> int:
        """Return how many steps the trials of fine-tuning take, on this many folds."""
        if self.tuning is None:
            return 0
        sizes = replace(self.task.sizes(0), labeled=len(self.task.labeled) * (count - 1) // count)
        recipe = self.tuning.config.recipe
        steps = sum(stage.steps(sizes) for stage in catalogue.plan(catalogue.baseline().name, recipe).stages)
        others = [stage for name in self.others for stage in catalogue.plan(name, recipe).stages]
        return count * (steps + sum(min(stage.steps(sizes), OTHERS) for stage in others))

    def _rate(self, at: Trials, first: Tried) -> tuple[Tried, list[str]]:
        """Return the best learning rate, or the proposed one if no other is clearly better."""
        if {"rate", "rate_round"} & set(self.fixed):
            return first, []
        recipe = self.config.recipe
        known = {1.0: first}

        def attempt(factor: float) -> None:
            rounds = recipe.rate_round
            scaled = (
                tuple(_times(factor, each) for each in rounds) if isinstance(rounds, tuple) else _times(factor, rounds)
            )
            tried = at.baseline(self.config, {"rate": _times(factor, recipe.rate), "rate_round": scaled})
            if tried is not None:
                known[factor] = tried

        middle = FACTORS.index(1.0)
        for place in (middle + 1, middle - 1):
            attempt(FACTORS[place])
        best = max(known, key=lambda factor: known[factor].score)
        if best != 1.0:
            attempt(FACTORS[-1] if best > 1 else FACTORS[0])
        early = self._early(at, list(known.values()))
        chosen = first if early else trials.choose(first, list(known.values()))
        scores = {f"{_times(factor, recipe.rate):g}": known[factor].score for factor in sorted(known)}
        rate = chosen.settings.get("rate", recipe.rate)
        return chosen, [trials.told("rate", f"{recipe.rate:g}", f"{rate:g}", scores, early)]

    def _early(self, at: Trials, known: Sequence[Tried]) -> str:
        """Return why none of these can be chosen, if they were cut short before any has learned much; else nothing."""
        if at.longest is None or trials.learned(known):
            return ""
        stages = catalogue.plan(catalogue.baseline().name, self.config.recipe).stages
        if all(stage.steps(self.task.sizes(0)) <= at.longest for stage in stages):
            return ""  # these trials were not cut short
        return f"since after {at.longest} steps hardly anything is learned yet, which tells nothing"

    def _length(self, at: Trials, chosen: Tried, told: list[str]) -> tuple[Tried, list[str]]:
        """Choose longer stages if they are clearly better."""
        if {"epochs", "epochs_round"} & set(self.fixed):
            return chosen, told
        recipe = self.config.recipe
        rounds = recipe.epochs_round
        scaled = tuple(LONGER * each for each in rounds) if isinstance(rounds, tuple) else LONGER * rounds
        try:
            longer = at.baseline(
                self.config, {**chosen.settings, "epochs": LONGER * recipe.epochs, "epochs_round": scaled}
            )
        except _OutOfTimeError:
            return chosen, [*told, "length as proposed: no time to try a longer schedule"]
        if longer is None:
            return chosen, told
        best = trials.choose(chosen, [chosen, longer])
        epochs = best.settings.get("epochs", recipe.epochs)
        scores = {str(recipe.epochs): chosen.score, str(LONGER * recipe.epochs): longer.score}
        return best, [*told, trials.told("epochs", str(recipe.epochs), str(epochs), scores)]

    def _class_weights(self, at: Trials, chosen: Tried, told: list[str]) -> tuple[Tried, list[str]]:
        """Choose class weights for rare classes of pixels if they are clearly better."""
        weights = None if "class_weights" in self.fixed else class_weights.of(self.task)
        try:
            weighted = weights and at.baseline(self.config, {**chosen.settings, "class_weights": weights})
        except _OutOfTimeError:
            return chosen, [*told, "weighting all classes equally: no time to try anything else"]
        if not weighted:
            return chosen, told
        best = trials.choose(chosen, [chosen, weighted])
        who = "weighting rare classes higher" if best is weighted else "weighting all classes equally"
        return best, [*told, f"{who}: equal {chosen.score:.1f}, by rarity {weighted.score:.1f}"]

    def _tuned(self, at: Trials, chosen: Tried, told: list[str], began: float) -> tuple[Found | None, list[str]]:
        """Choose fine-tuning if its Baseline is clearly better on the same folds, then search its learning rate.

        Returns:
            The findings if fine-tuning was chosen, else None, and the texts about all choices.
        """
        if self.tuning is None:
            return None, told
        config, task = self.tuning.config, self.tuning.task
        try:
            beside = Trials(replace(at.folds, task=task), at.lines, None, at.tried)
            tuned = beside.baseline(config, {"net": config.net})
        except _OutOfTimeError:
            return None, [*told, "training last layers only: no time to try fine-tuning"]
        if tuned is None:
            return None, told
        better = trials.clearly_better(tuned.said, chosen.said)
        who = "fine-tuning all layers" if better else "training last layers only"
        told = [*told, f"{who}: all layers {tuned.score:.1f}, last layers {chosen.score:.1f}"]
        if not better:
            return None, told
        left = max(0.0, self.patience - (time.monotonic() - began))
        rates = replace(self, config=config, task=task, tuning=None, patience=left).run()
        so_far = findings.of_trials(at, TrialRounds(Tried({}, tuned.said), [], []), told, self.methods)
        tried = [*so_far.record["tried"], *rates.record.get("tried", [])]
        record = {**so_far.record, "chosen": {"net": config.net, **rates.settings}, "tried": tried}
        return Found(rates.settings, (*so_far.lines, *rates.lines), record, config, said=tuned.said), told

    def _another_method(self, at: Trials, so_far: Found) -> Found:
        """Choose another method, with fine-tuned nets, if it is clearly better on the same folds."""
        if self.tuning is None or so_far.said is None or not (self.others and len(self.task.unlabeled)):
            return so_far
        config = self.tuning.config
        settings = {"net": config.net, **(so_far.settings if so_far.config is not None else {})}
        beside = Trials(replace(at.folds, task=self.tuning.task), "AB", None, at.tried)
        try:
            if len(settings) > 1:  # the rate was found on other folds: evaluate the Baseline with it on these, too
                again = beside.baseline(config, settings)
                so_far = so_far if again is None else findings.asked_again(so_far, again)
            return self._replaced(replace(beside, longest=OTHERS), so_far, settings)
        except _OutOfTimeError:
            return so_far

    def _replaced(self, at: Trials, so_far: Found, settings: Mapping[str, Any]) -> Found:
        """Try the methods that may replace the default one, and take the first that is clearly better."""
        assert self.tuning is not None
        assert so_far.said is not None
        for other in map(catalogue.get, self.others):
            rounds = at.rounds(other.name, self.tuning.config, settings)
            if rounds is None:
                continue
            better = trials.clearly_better(rounds[-1], so_far.said)
            so_far = findings.with_other(at, so_far, other, better)
            if better:
                config = configuration.override(self.tuning.config, settings)
                return findings.replaced(so_far, other, settings, config)
        return so_far

    def _rounds(self, at: Trials, chosen: Tried) -> TrialRounds:
        """Choose the options of rounds; nothing is tried if there are no rounds, or no time for them."""
        method = trial_rounds.method_of(self.methods)
        if method is None or not len(self.task.unlabeled):
            return TrialRounds(chosen, [], [])
        try:
            return trial_rounds.of_layers(at, self.config, method, chosen, self.fixed)
        except _OutOfTimeError:
            return TrialRounds(chosen, ["rounds as proposed: no time to try them"], [])


def _times(factor: float, rate: float) -> float:
    return float(f"{factor * rate:.6g}")
