"""Lengths of the trials in a search by cross-validation, and their number of steps, for a forecast."""

from collections.abc import Sequence
from dataclasses import replace

from dmt.config import Config
from dmt.methods import catalogue
from dmt.methods.plan import Stage
from dmt.own import folds, trial_rounds

LONGER = 3
"""Factor by which stages are lengthened in the trial of a longer schedule."""

THIRDS, HALVES = 3, 2
"""Number of folds for last layers, which train in a second, and for nets that process images in every step."""

SHORT = (40, 200)
"""Maximum number of steps of a trial with nets that process images, on a CPU and on a GPU."""

OTHERS = 600
"""Maximum number of steps per stage in a trial of a method that may replace the default one."""


def plans(config: Config, methods: Sequence[str], labeled: int, large: bool) -> list[tuple[Stage, float]]:
    """Return the stages that a search trains, each with the largest number of steps that all its trials may take.

    Trials of fine-tuning and of other methods are not included.
    """
    if labeled < folds.FEWEST:
        return []
    cheap, rounds = config.stores_features("A"), trial_rounds.method_of(methods)
    count, lines = (THIRDS, "AB") if cheap else (HALVES, "A")
    sizes = replace(config.data.sizes, labeled=labeled * (count - 1) // count)
    base = catalogue.plan(catalogue.baseline().name, config.recipe).stages
    first = [stage for stage in base if set(stage.lines) <= set(lines)]
    if not cheap:
        # four learning rates and, for masks, class weights
        tried = 4 + config.data.sizes.pixels
        return [(stage, float(tried * count * min(stage.steps(sizes), SHORT[large]))) for stage in first]
    # four learning rates and a longer schedule; then all rounds with each γ
    work = [(stage, count * (4.0 + LONGER) * stage.steps(sizes)) for stage in first]
    if rounds is not None and sizes.unlabeled:
        every = catalogue.plan(rounds, config.recipe).stages
        work += [(stage, count * (1.0 + len(trial_rounds.GAMMAS)) * stage.steps(sizes)) for stage in every]
    return work
