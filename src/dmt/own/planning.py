"""Forecast of the time that a run on a folder takes, from the rates of a rehearsal; schedules that fit a budget."""

from collections.abc import Callable, Sequence

import torch

from dmt import config as configuration
from dmt.config import Config
from dmt.data.folders.contents import FolderContents
from dmt.data.folders.photo_options import PhotoOptions
from dmt.methods import catalogue
from dmt.methods.plan import Stage
from dmt.own import rehearsal, search_cost, view_counts
from dmt.own.rehearsal import Rates

SHARE = 0.85
"""Share of a budget that the forecast may use; the rest is for what a rehearsal does not measure."""

LENGTHS = (
    "epochs",
    "epochs_round",
    "epochs_pretrain",
    "epochs_online_stage",
    *(f"{group}.epochs" for group, kind in catalogue.groups().items() if hasattr(kind, "epochs")),
)
"""Options for the lengths of stages; a budget changes those of them that the planned methods read."""

SHORTENED = (*LENGTHS, "fractions", "stored_views")
"""Options that a budget may change."""

Length = int | tuple[int, ...]
"""Number of epochs: one for all, or one for each round."""


def usual(contents: FolderContents) -> list[str]:
    """Return the methods that are trained on a folder by default."""
    if not contents.unlabeled:
        return [catalogue.baseline().name]
    return catalogue.with_baseline([catalogue.default().name])


def forecast(config: Config, contents: FolderContents, rates: Rates, methods: Sequence[str]) -> float:
    """Return the seconds that a run of these methods will take."""
    sizes, planned = config.data.sizes, rehearsal.stages(config, methods)
    training = sum(rates.steps[rehearsal.kind(stage)] * stage.steps(sizes) for stage in planned)
    scored = len(contents.test) + (len(contents.validation) or validation_images(config))
    # the teacher labels all images; in classification, the finished student also predicts them once for its weights
    weighed = 0 if sizes.pixels else 1
    labeled = sum(stage.labels.passes + weighed for stage in planned if stage.labels is not None) * sizes.unlabeled
    passes = sum(_nets(stage) * scored for stage in planned) + labeled
    photos = sum(len(part) for _, part in contents.parts())
    training += sum(
        rates.steps[rehearsal.kind(stage)] * steps
        for stage, steps in search_cost.plans(config, methods, sizes.labeled, rates.large)
        if rehearsal.kind(stage) in rates.steps
    )
    return (
        photos * rates.reading + training + passes * rates.forward + _encoded(config, photos, scored) * rates.encoding
    )


def _encoded(config: Config, photos: int, scored: int) -> int:
    """Return how many views frozen encoders encode: all stored views, but one of each image that is only scored."""
    views = config.data.stored_views if isinstance(config.data, PhotoOptions) else 0
    return views * (photos - scored) + scored if views else 0


def _nets(stage: Stage) -> int:
    """Return how many nets are scored when a stage is finished, EMA copies included."""
    return len(stage.lines) * (1 if stage.schedule.ema is None else 2)


def validation_images(config: Config) -> int:
    """Return how many images will be held out from the labels."""
    data = config.data
    return data.validation * (len(data.classes) if isinstance(data, PhotoOptions) else 1)


def within(
    config: Config, contents: FolderContents, rates: Rates, budget: float, methods: Sequence[str]
) -> tuple[Config, tuple[str, ...]]:
    """Shorten the schedule until these methods fit a budget in seconds.

    Fewer views are stored first, then there are fewer rounds, then all stages are shortened.

    Returns:
        The configuration and lines about what was given up.
    """

    def seconds(planned: Config) -> float:
        return forecast(planned, contents, rates, methods)

    whole = seconds(config)
    if whole <= SHARE * budget:
        return config, (f"the whole schedule fits the budget: about {_minutes(whole)} of {_minutes(budget)}",)
    to_fit = f"to fit into the {_minutes(budget)} left of the budget, the run uses"
    fewer, given_up = config, []
    if isinstance(config.data, PhotoOptions) and config.data.stored_views > 1:
        most = config.data.stored_views
        least = min(most, max(view_counts.fewest(config, method) for method in methods))
        fitting = (_with_views(config, views) for views in range(most - 1, least - 1, -1))
        fewer = next((each for each in fitting if seconds(each) <= SHARE * budget), _with_views(config, least))
        left = configuration.flat(fewer)["stored_views"]
        if left < most:
            given_up.append(f"stored_views={left} instead of {most}")
        if seconds(fewer) <= SHARE * budget:
            return fewer, (f"{to_fit} {given_up[0]}: about {_minutes(seconds(fewer))} now",)
    if whole > 4 * budget and len(config.recipe.fractions) > 3 and not config.recipe.lists:
        shorter = configuration.override(fewer, {"fractions": (0.4, 0.7, 1.0)})
        if rehearsal.stages(shorter, methods) != rehearsal.stages(config, methods):  # there are rounds
            fewer = shorter
            given_up.append(f"3 rounds instead of {len(config.recipe.fractions)}")
    fixed = seconds(_shortened(fewer, methods, 0.0))
    factor = max(0.0, min(1.0, (SHARE * budget - fixed) / max(seconds(fewer) - fixed, 1e-9)))
    shorter = _shortened(fewer, methods, factor)
    before, after = lengths(config, methods), lengths(shorter, methods)
    shown = configuration.shown
    given_up.append(", ".join(f"{key}={shown(after[key])} instead of {shown(before[key])}" for key in before))
    expected = seconds(shorter)
    line = f"{to_fit} {' and '.join(given_up)}: about {_minutes(expected)} now"
    if expected <= budget:
        return shorter, (line,)
    return shorter, (line, "even the shortest schedule takes longer than the budget; the run will stop there")


def _with_views(config: Config, views: int) -> Config:
    return configuration.override(config, {"stored_views": views})


def lengths(config: Config, methods: Sequence[str]) -> dict[str, Length]:
    """Return the options that affect how long the stages of these methods train, with their values."""
    values = configuration.flat(config)
    planned = rehearsal.stages(config, methods)
    given = [key for key in LENGTHS if values[key] is not None]  # None means that another option decides
    longer = {key: configuration.override(config, {key: _each(values[key], lambda n: n + 1)}) for key in given}
    return {key: values[key] for key in given if rehearsal.stages(longer[key], methods) != planned}


def _shortened(config: Config, methods: Sequence[str], factor: float) -> Config:
    """Scale the lengths of all stages by ``factor``, rounded down so that they fit, to at least one epoch."""
    found = lengths(config, methods)
    shorter = {key: _each(value, lambda epochs: max(1, int(epochs * factor))) for key, value in found.items()}
    return configuration.override(config, shorter)


def _each(length: Length, change: Callable[[int], int]) -> Length:
    """Apply a function to a length or, if it is a tuple, to the length of each round."""
    return tuple(map(change, length)) if isinstance(length, tuple) else change(length)


def _minutes(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} minutes" if seconds < 600 else f"{seconds / 60:.0f} minutes"


def line(seconds: float, device: torch.device, methods: Sequence[str]) -> str:
    """Describe a forecast in words."""
    where = "GPU" if device.type == "cuda" else "CPU"
    titles = [method.title for name, method in catalogue.METHODS.items() if name in methods]
    named = " and ".join(filter(None, (", ".join(titles[:-1]), titles[-1])))
    return f"a run ({named}) will take about {_minutes(seconds)} on this {where}"
