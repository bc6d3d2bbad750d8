"""Forecast of a plan: a table of its stages, with times measured in a few steps on random images. Saves nothing."""

from collections.abc import Sequence

import torch
from rich.table import Table

from dmt.core.execution import Execution
from dmt.core.schedule import Descent, Schedule
from dmt.methods.plan import Stage
from dmt.models import build
from dmt.models.build import NetSpec
from dmt.objectives.truth import Supervised
from dmt.runs import progress, timing
from dmt.training.trainer import Trainer, Training
from dmt.types import Batch, BatchShape, Sizes


class _MadeUp:
    """Batches of random labeled images, the same in every step."""

    def __init__(self, size: int, spec: NetSpec, device: torch.device) -> None:
        self.shape = BatchShape(size, 0, spec.shape[1], spec.shape[2])
        sites = spec.shape[1:] if spec.pixels else ()
        truth = torch.zeros(size, *sites, dtype=torch.int64, device=device)
        self._batch = Batch(torch.rand(size, *spec.shape, device=device), truth)

    def draw(self, step: int) -> None:
        return None

    def make(self, drawn: None) -> Batch:
        return self._batch


def passes_per_second(spec: NetSpec, batch: int, execution: Execution, patience: float = 2.0) -> float:
    """Measure training passes (forward, backward and update of one image) per second, in about ``patience`` seconds.

    On a CPU, a smaller batch than the real one may be timed, since the rate hardly depends on the batch size there.
    """
    size = batch if execution.on_cuda else min(batch, 2 if spec.pixels else 64)
    with execution.active():
        return _timed(spec, size, execution, patience)


def _timed(spec: NetSpec, size: int, execution: Execution, patience: float) -> float:
    schedule = Schedule(epochs=1, descent=Descent(1e-6), rate_ramp="constant", labeled=size)
    training = Training(Supervised(), schedule, steps=10**6, seed=0)
    batches = _MadeUp(size, spec, execution.device)
    trainer = Trainer({"A": build.build(spec, seed=0)}, training, batches, execution)
    return size / timing.step_seconds(trainer, patience)


def _teacher(stage: Stage) -> str:
    """Return the sources of a stage's labels: the given labels, plus an earlier stage or an online method, if any."""
    if stage.labels is not None:
        return f"labels, {' + '.join(stage.labels.teachers)}"
    return f"labels, {type(stage.objective).__name__}" if stage.objective.views else "labels"


def table(stages: Sequence[Stage], sizes: Sizes, rate: float | None, forward: float) -> tuple[Table, str]:
    """Return a table of a plan's stages, and a summary line.

    Args:
        stages: the plan's stages.
        sizes: numbers of images.
        rate: training passes per second; None to leave out times.
        forward: cost of labeling an image, as a fraction of a training pass.
    """
    rows = Table("stage", "start", "teacher", "fraction", "weights", "epochs", "batch", "steps", "expected time")
    total_steps, total_seconds = 0, 0.0
    for stage in stages:
        steps, schedule, labels = stage.steps(sizes), stage.schedule, stage.labels
        work = steps * stage.cost().passes + (labels.passes * forward * sizes.unlabeled if labels else 0.0)
        seconds = 0.0 if rate is None else work / rate
        total_steps, total_seconds = total_steps + steps, total_seconds + seconds
        rows.add_row(
            stage.name,
            stage.start or "fresh",
            _teacher(stage),
            "–" if labels is None else f"{labels.fraction:g}",
            getattr(stage.objective, "weighting", "–"),
            f"{schedule.epochs:,}",
            f"{schedule.unlabeled} + {schedule.labeled}" if schedule.unlabeled else f"{schedule.labeled}",
            f"{steps:,}",
            "–" if rate is None else progress.duration(seconds),
        )
    when = "" if rate is None else f", about {progress.duration(total_seconds)} on this machine"
    images = f"{sizes.labeled:,} labeled and {sizes.unlabeled:,} unlabeled images"
    return rows, f"{total_steps:,} steps{when}; {images}"
