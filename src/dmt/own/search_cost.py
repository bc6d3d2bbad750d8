"""What a search on folds of the labels trains: the lengths of its trials, and what they come to for a forecast."""

from collections.abc import Sequence
from dataclasses import replace

from dmt.config import Config
from dmt.methods import catalogue
from dmt.methods.plan import Stage
from dmt.own import folds, trial_rounds

LONGER = 3
"""How much longer stages are tried than a schedule proposes."""

THIRDS, HALVES = 3, 2
"""Folds of last layers, which learn in a second, and of nets that look at images in every step."""

SHORT = (40, 200)
"""Steps of such nets, on a CPU and on a GPU."""

OTHERS = 600
"""Steps at most of a method that may replace the default one."""


def plans(config: Config, methods: Sequence[str], labeled: int, large: bool) -> list[tuple[Stage, float]]:
    """Stages that a search trains, each with its number of steps: what it costs at most, for a forecast."""
    if labeled < folds.FEWEST:
        return []
    cheap, rounds = config.stores_features("A"), trial_rounds.method_of(methods)
    count, lines = (THIRDS, "AB") if cheap else (HALVES, "A")
    sizes = replace(config.data.sizes, labeled=labeled * (count - 1) // count)
    base = catalogue.plan(catalogue.baseline().name, config.recipe).stages
    first = [stage for stage in base if set(stage.lines) <= set(lines)]
    if not cheap:
        # four rates and, of masks, what rare classes should count
        tried = 4 + config.data.sizes.pixels
        short = [(stage, float(tried * count * min(stage.steps(sizes), SHORT[large]))) for stage in first]
        return short + (_of_masks(config, rounds, labeled, large) if config.data.sizes.pixels else [])
    # rates, then once more but longer; then all rounds with every γ
    work = [(stage, count * (4.0 + LONGER) * stage.steps(sizes)) for stage in first]
    if rounds is not None and sizes.unlabeled:
        every = catalogue.plan(rounds, config.recipe).stages
        work += [(stage, count * (1.0 + len(trial_rounds.GAMMAS)) * stage.steps(sizes)) for stage in every]
    return work


def _of_masks(config: Config, method: str | None, labeled: int, large: bool) -> list[tuple[Stage, float]]:
    """Stages of rounds that are tried."""
    parts = trial_rounds.PARTS
    sizes = replace(config.data.sizes, labeled=labeled * (parts - 1) // parts)
    if method is None or not sizes.unlabeled:
        return []
    stages = catalogue.plan(method, config.recipe).stages
    return [(stage, float(min(stage.steps(sizes), trial_rounds.LONGEST[large]))) for stage in stages]
