"""Training speed of a stage of each method on CIFAR-10, end to end, relative to its own bare step in the same run.

Bare: the method's own loss and optimizer on one fixed batch, compiled and recorded as a CUDA graph, without data
loading, augmentation and journal, and without an EMA copy unless the method needs one. Stage: the real loop with views,
augmentation, EMA, journal and checkpoints, with the preset cifar10-4k and random images in the real numbers and shapes.
Images are counted once per step, however many views and nets see them. Figures are medians over intervals of 100 steps.

    python benchmarks/online_throughput.py --steps 800 --out FOLDER
"""

import argparse
import dataclasses
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.cifar_throughput import CONFIG, DATA, SPEC, random_task, timed
from dmt import files, run_files
from dmt.core.execution import Execution
from dmt.data.sets import PseudoLabels
from dmt.methods import catalogue
from dmt.methods.plan import Stage
from dmt.models import build
from dmt.runs import environment
from dmt.training import loop
from dmt.training.checkpoint import Checkpoint
from dmt.training.journal import Journal
from dmt.training.trainer import Trainer, Training
from dmt.types import Batch, BatchShape, Target

METHODS = ("dmt", "fixmatch", "uda", "cps", "mean-teacher", "pi-model", "pseudo-label")


class OneBatch:
    """The same batch in every step, already on the device."""

    def __init__(self, stage: Stage, execution: Execution) -> None:
        plan = stage.batch_plan(seed=0)
        self.shape = BatchShape(plan.labeled, plan.unlabeled, *DATA.shape[1:])
        device, count = execution.device, plan.unlabeled

        def images(number: int) -> torch.Tensor:
            return torch.rand(number, *DATA.shape, device=device).contiguous(memory_format=execution.layout)

        target = Target(torch.randint(0, 10, (count,), device=device), torch.rand(count, device=device))
        self._batch = Batch(
            images(plan.labeled),
            torch.randint(0, 10, (plan.labeled,), device=device),
            {view: images(count) for view in plan.views},
            target if stage.labels is not None else None,
            torch.arange(count, device=device),
        )

    def draw(self, step: int) -> None:
        return None

    def make(self, drawn: None) -> Batch:
        return self._batch


def nets(stage: Stage, name: str) -> dict[str, torch.nn.Module]:
    spec = dataclasses.replace(SPEC, name=name)
    return {line: build.build(spec, seed) for seed, line in enumerate(stage.lines)}


def bare(stage: Stage, name: str, execution: Execution, steps: int) -> float:
    """Measure images per second of the method's bare step."""
    slow = stage.schedule.ema if stage.objective.slow else None
    schedule = dataclasses.replace(stage.schedule, ema=slow)
    training = Training(stage.objective, schedule, steps=10**6, seed=1)
    trainer = Trainer(nets(stage, name), training, OneBatch(stage, execution), execution)
    inputs = trainer.draw()
    trainer.advance(inputs)
    return timed(lambda: trainer.advance(inputs), steps, execution, schedule.batch)


def whole(stage: Stage, name: str, execution: Execution, steps: int, folder: Path) -> tuple[float, float]:
    """Measure the stage in the real loop: images per second, and seconds until the first step was done."""
    task, kept = random_task(4000, 45_800), None
    if stage.labels is not None:
        count = len(task.unlabeled)
        every = torch.ones(count, dtype=torch.bool)
        kept = PseudoLabels(torch.randint(0, 10, (count,)), torch.rand(count), every)
    batches = task.batches(task.labeled, kept, stage.batch_plan(seed=1), execution)
    training = Training(stage.objective, stage.schedule, steps, seed=1)
    trainer = Trainer(nets(stage, name), training, batches, execution)
    began, first = time.perf_counter(), [0.0]

    def after(step: int) -> None:
        first[0] = first[0] or time.perf_counter() - began

    journal = Journal(folder / run_files.JOURNAL)
    loop.fit(trainer, Checkpoint(folder), journal, loop.Pace(30.0, lambda: False, after))
    rates = [line["images_per_s"] for line in journal.read() if line["kind"] == "interval"]
    trainer.close()
    return statistics.median(rates[max(1, len(rates) // 5) :] or rates), first[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=800, help="steps of each figure")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--net", default=CONFIG.net)
    parser.add_argument("--out", type=Path, required=True, help="a folder for online_throughput.json")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no further method after so many")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    began, execution = time.perf_counter(), environment.pick_execution(options.device, None)
    described = environment.describe(execution.device)
    kept = {key: described[key] for key in ("dmt", "python", "torch", "hardware", "command")}
    figures: dict[str, Any] = {}
    for method in options.methods.split(","):
        if time.perf_counter() - began > options.seconds:
            break
        stage = catalogue.plan(method, CONFIG.recipe).stages[-1]
        with execution.active(), tempfile.TemporaryDirectory() as folder:
            floor = bare(stage, options.net, execution, options.steps)
            rate, start = whole(stage, options.net, execution, options.steps, Path(folder))
        step = stage.cost()
        figures[method] = {
            "batch": [stage.schedule.labeled, stage.schedule.unlabeled],
            "learned_per_step": step.learned,
            "looked_per_step": step.looked,
            "bare_images_per_s": floor,
            "stage_images_per_s": rate,
            "of_bare": rate / floor,
            "seconds_to_first_step": start,
        }
        print(
            f"{time.perf_counter() - began:6.1f} s {method}: {rate:,.0f} of {floor:,.0f} = {rate / floor:.3f}",
            flush=True,
        )
        about = {"environment": kept, "steps": options.steps, "net": options.net, "fast": execution.fast}
        files.write_json(options.out / "online_throughput.json", about | {"figures": figures})


if __name__ == "__main__":
    main()
