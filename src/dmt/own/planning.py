"""How long a run on a folder will take, from timing a few steps; and a schedule that fits a budget."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from dmt.config import Config
from dmt.core import codes
from dmt.core.execution import Execution
from dmt.data import ragged
from dmt.data.folders.contents import FolderContents
from dmt.data.folders.photo_options import PhotoOptions
from dmt.methods import catalogue
from dmt.methods.plan import Stage
from dmt.models import build
from dmt.tasks import opening
from dmt.tasks.base import Task
from dmt.training import inference
from dmt.training.trainer import Trainer, Training
from dmt.types import Target

SOME = 64
"""Labeled, and as many unlabeled photos, that a rehearsal reads."""

SHARE = 0.85
"""Of a budget that steps may fill: the rest is for what a rehearsal does not see."""

SHORTENED = ("epochs", "epochs_round", "fractions")
"""Options that a budget may change."""


@dataclass(frozen=True)
class Rates:
    """What a rehearsal measured, in seconds."""

    reading: float  # one photo
    steps: dict[str, float]  # one step of a stage, by its kind of objective
    forward: float  # one image outside of training


def rehearse(config: Config, contents: FolderContents, execution: Execution, patience: float = 1.5) -> Rates:
    """Read some photos, train a few steps of each kind, label some images. Keeps nothing."""
    some = replace(
        contents, labeled=_spread(contents.labeled), unlabeled=_spread(contents.unlabeled), validation=(), test=()
    )
    began = time.perf_counter()
    opened = opening.read_folder(replace(config.data, validation=0), some)  # type: ignore[arg-type]
    reading = (time.perf_counter() - began) / max(len(some.labeled) + len(some.unlabeled), 1)
    task, _ = opened.split(1)
    execution = execution.for_net(config.net, task.pixels)
    steps: dict[str, float] = {}
    with execution.active():
        for stage in _kinds(config, bool(contents.unlabeled)):
            steps[_kind(stage)] = _step(stage, config, task, execution, patience)
        forward = _forward(config, task, execution, patience)
    return Rates(reading, steps, forward)


def _spread(photos: tuple[Any, ...]) -> tuple[Any, ...]:
    """Some photos from all over."""
    return photos[:: max(1, len(photos) // SOME)][:SOME]


def _kind(stage: Stage) -> str:
    return type(stage.objective).__name__


def _kinds(config: Config, unlabeled: bool) -> list[Stage]:
    """One stage of each kind that Baseline and DMT train."""
    stages = (catalogue.default() if unlabeled else catalogue.baseline()).plan(config.recipe).stages
    return list({_kind(stage): stage for stage in stages}.values())


def _step(stage: Stage, config: Config, task: Task, execution: Execution, patience: float) -> float:
    pseudo = _made_up(task) if stage.labels is not None else None
    batches = task.batches(task.labeled, pseudo, stage.batch_plan(seed=0), execution)
    nets: dict[str, nn.Module] = {line: build.build(task.net_spec(config.net_of(line)), seed=0) for line in stage.lines}
    slowly = replace(stage.schedule, descent=replace(stage.schedule.descent, rate=1e-6))
    trainer = Trainer(nets, Training(stage.objective, slowly, steps=10**6, seed=0), batches, execution)
    trainer.advance(trainer.draw())  # the first step allocates, and compiles where that is asked for
    return _timed(lambda: trainer.advance(trainer.draw()), execution, patience)


def _made_up(task: Task) -> Any:
    """Labels for the unlabeled images, of no meaning but of the right shape."""
    count = len(task.unlabeled)
    if not task.pixels:
        return torch.arange(count), Target(torch.zeros(count, dtype=torch.int64), torch.full((count,), 0.9))
    sizes = task.unlabeled.images.sizes
    labels = ragged.stack([torch.zeros(size, dtype=torch.uint8).numpy() for size in sizes])
    surety = codes.pack(torch.tensor(40_000)).item()
    return labels, ragged.stack([torch.full(size, surety, dtype=torch.int16).numpy() for size in sizes])


def _forward(config: Config, task: Task, execution: Execution, patience: float) -> float:
    """Seconds for one image outside of training."""
    images = task.unlabeled if len(task.unlabeled) else task.labeled
    net = build.build(task.net_spec(config.net), seed=0).to(execution.device)

    def once() -> None:
        for _ in inference.logits(net, task, images, execution.device):
            pass

    once()  # the first time, libraries choose their kernels for every size
    return _timed(once, execution, patience / 2) / len(images)


def _timed(act: Callable[[], object], execution: Execution, patience: float) -> float:
    def now() -> float:
        if execution.on_cuda:
            torch.cuda.synchronize(execution.device)
        return time.perf_counter()

    count, began = 0, now()
    while count < 2 or now() - began < patience:
        act()
        count += 1
    return (now() - began) / count


def forecast(config: Config, contents: FolderContents, rates: Rates, methods: tuple[str, ...] | None = None) -> float:
    """Seconds that a run of these methods will take; of the default one and its Baseline if left out."""
    sizes = config.data.sizes
    stages: dict[tuple[object, ...], Stage] = {}
    wanted = methods or catalogue.with_baseline([catalogue.default().name])
    for method in wanted if contents.unlabeled else (catalogue.baseline().name,):
        for stage in catalogue.plan(method, config.recipe).stages:
            stages[stage.name, stage.objective, stage.share] = stage  # what methods share is trained once
    training = sum(rates.steps[_kind(stage)] * stage.steps(sizes) for stage in stages.values())
    scored = len(contents.test) + (len(contents.validation) or validation_images(config))
    copies = 1 if config.recipe.ema is None else 2
    # the teacher labels all images; where these get labels, the finished student weighs them all once more
    labeled = sizes.unlabeled * (1 if sizes.pixels else 2)
    passes = sum(scored * copies + (labeled if stage.labels is not None else 0) for stage in stages.values())
    photos = sum(len(part) for _, part in contents.parts())
    return photos * rates.reading + training + passes * rates.forward


def validation_images(config: Config) -> int:
    """Images that will be held out of the labels."""
    data = config.data
    return data.validation * (len(data.classes) if isinstance(data, PhotoOptions) else 1)


def within(config: Config, contents: FolderContents, rates: Rates, budget: float) -> tuple[Config, tuple[str, ...]]:
    """A schedule that fits a budget in seconds, and what was given up for it."""
    whole = forecast(config, contents, rates)
    if whole <= SHARE * budget:
        return config, (f"the whole schedule fits the budget: about {_minutes(whole)} of {_minutes(budget)}",)
    recipe, given_up = config.recipe, []
    if whole > 4 * budget and len(recipe.fractions) > 3:
        given_up.append(f"3 rounds instead of {len(recipe.fractions)}")
        recipe = replace(recipe, fractions=(0.4, 0.7, 1.0))
    fixed = forecast(_shortened(config, recipe, 0.0), contents, rates)
    left = forecast(replace(config, recipe=recipe), contents, rates) - fixed
    factor = max(0.0, min(1.0, (SHARE * budget - fixed) / max(left, 1e-9)))
    shorter = _shortened(config, recipe, factor)
    given_up.append(
        f"epochs={shorter.recipe.epochs} instead of {config.recipe.epochs}, "
        f"epochs_round={shorter.recipe.epochs_round} instead of {config.recipe.epochs_round}"
    )
    expected = forecast(shorter, contents, rates)
    line = f"to fit {_minutes(budget)} the run gives up {' and '.join(given_up)}: about {_minutes(expected)} now"
    if expected <= budget:
        return shorter, (line,)
    return shorter, (line, "even the shortest schedule takes longer than the budget; the run will stop there")


def _shortened(config: Config, recipe: Any, factor: float) -> Config:
    epochs = max(1, int(recipe.epochs * factor))  # rounded up it would not fit
    rounds = max(1, int(recipe.epochs_round * factor))
    return replace(config, recipe=replace(recipe, epochs=epochs, epochs_round=rounds))


def _minutes(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} minutes" if seconds < 600 else f"{seconds / 60:.0f} minutes"


def line(seconds: float, device: torch.device) -> str:
    """A forecast in words."""
    where = "GPU" if device.type == "cuda" else "CPU"
    return f"a run (Baseline and DMT) will take about {_minutes(seconds)} on this {where}"
