"""Training speed of a CIFAR-10 stage, end to end, relative to the bare step of the same net in the same run.

Bare: WRN-28-2 on one fixed batch of 512, with forward, backward and SGD, but without data loading, augmentation and
EMA. The second bare figure adds a forward pass without gradient, which the dynamic weight needs; the third adds one
over a quarter of the images, as with weight_every=4. All are compiled and recorded as a CUDA graph. Stages: the real
loop with augmentation, mixup, EMA, journal and checkpoints, with the preset cifar10-4k and random images in the real
numbers and shapes. All figures are medians over intervals of 100 steps, without warm-up.

    python benchmarks/cifar_throughput.py --steps 2000
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from dmt import presets, run_files
from dmt.core.execution import Execution
from dmt.data.images import augment
from dmt.data.images.datasets import DATASETS
from dmt.data.sets import LabeledSet, PseudoLabels, UnlabeledSet
from dmt.methods import catalogue
from dmt.methods.plan import Stage
from dmt.models import build
from dmt.runs import environment
from dmt.tasks import opening
from dmt.tasks.classification import Classification
from dmt.training import loop
from dmt.training.checkpoint import Checkpoint
from dmt.training.journal import Journal
from dmt.training.recording import Recorded
from dmt.training.trainer import Student, Trainer, Training

CONFIG = presets.get("cifar10-4k").config
DATA = DATASETS["cifar10"]
SPEC = opening.net_spec(CONFIG.data, CONFIG.net)


def random_task(labeled: int, unlabeled: int) -> Classification:
    """Return a task of random images in these numbers and the real shape."""

    def images(count: int) -> torch.Tensor:
        return torch.randint(0, 256, (count, *DATA.shape), dtype=torch.uint8)

    def names(count: int) -> tuple[str, ...]:
        return tuple(map(str, range(count)))

    few = LabeledSet(names(labeled), images(labeled), torch.randint(0, 10, (labeled,)))
    many = UnlabeledSet(names(unlabeled), images(unlabeled))
    policies = augment.views("paper")
    return Classification(DATA.classes, DATA.shape, DATA.normalization, policies, few, many, few, few)


def bare(execution: Execution, steps: int, *, looked: int = 0) -> float:
    """Measure images per second of the bare step, after a gradient-free forward pass over ``looked`` images."""
    net = build.build(SPEC, seed=0).to(execution.device, memory_format=torch.channels_last).train()  # type: ignore[call-overload]
    student = Student(net, execution)
    images = torch.rand(512, *DATA.shape, device=execution.device).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(0, 10, (512,), device=execution.device)
    rate = torch.tensor(1e-3, device=execution.device)
    parameters = list(net.parameters())
    optimizer = torch.optim.SGD(parameters, lr=rate, momentum=0.9, weight_decay=5e-4, fused=True)

    def step(_: object) -> torch.Tensor:
        weight = student.peek(images[:looked]).softmax(1).amax(1).mean() if looked else 1.0
        loss: torch.Tensor = torch.nn.functional.cross_entropy(student(images), labels) * weight
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return loss.detach()

    for parameter in parameters:
        optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
    run: Callable[[object], torch.Tensor] = step
    if execution.records:
        run = Recorded(step, (), [*net.parameters(), *net.buffers()])
    return timed(lambda: run(()), steps, execution)


def timed(run: Callable[[], object], steps: int, execution: Execution, batch: int = 512) -> float:
    """Measure median images per second over intervals of 100 steps (on a CPU, single steps), without the first."""
    rates = []
    for _ in range(max(steps // 100, 2)):
        began = time.perf_counter()
        for _ in range(100 if execution.on_cuda else 1):
            run()
        if execution.on_cuda:
            torch.cuda.synchronize()
        rates.append((100 if execution.on_cuda else 1) * batch / (time.perf_counter() - began))
    return statistics.median(rates[1:])


def stage_rate(method: str, execution: Execution, steps: int, weight_every: int = 1) -> tuple[float, float]:
    """Measure a stage in the real loop: images per second, and seconds until the first step was done."""
    plan = catalogue.plan(method, replace(CONFIG.recipe, weight_every=weight_every))
    stage: Stage = plan.stages[-1]
    task = random_task(4000, 45_800)
    kept = None
    if stage.labels is not None:
        count = len(task.unlabeled)
        every = torch.ones(count, dtype=torch.bool)
        kept = PseudoLabels(torch.randint(0, 10, (count,)), torch.rand(count), every)
    batches = task.batches(task.labeled, kept, stage.batch_plan(seed=1), execution)
    net = build.build(SPEC, seed=0)
    memory = stage.objective.memory(task.sizes(0), len(DATA.classes))
    training = Training(stage.objective, stage.schedule, steps, seed=1, memory=memory)
    trainer = Trainer({"A": net}, training, batches, execution)
    began, first = time.perf_counter(), [0.0]

    def tell(step: int) -> None:
        first[0] = first[0] or time.perf_counter() - began

    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / run_files.JOURNAL)
        loop.fit(trainer, Checkpoint(Path(folder)), journal, loop.Pace(30.0, lambda: False, tell))
        rates = [line["images_per_s"] for line in journal.read() if line["kind"] == "interval"]
    return statistics.median(rates[max(1, len(rates) // 10) :] or rates), first[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=2000, help="steps of each figure")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--plain", action="store_true", help="neither compile nor record")
    options = parser.parse_args()
    execution = environment.pick_execution(options.device, fast=False if options.plain else None)
    with execution.active():
        measure(execution, options.steps, execution.device)


def measure(execution: Execution, steps: int, device: torch.device) -> None:
    """Measure all figures in one process; print each when it is known, and all as JSON at the end."""
    first, second, quarter = (bare(execution, steps, looked=looked) for looked in (0, 512, 128))
    result = {
        "bare step": {"images_per_s": first},
        "bare step and forward": {"images_per_s": second},
        "bare step and a quarter of a forward": {"images_per_s": quarter},
    }
    print(json.dumps(result), file=sys.stderr, flush=True)
    stages = (
        ("baseline", 1, first, 0.9),
        ("cl", 1, first, 0.9),
        ("dmt", 1, second, 0.85),
        ("dmt", 4, quarter, 0.93),
    )
    for method, every, floor, goal in stages:
        name = method if every == 1 else f"{method} weight_every={every}"
        rate, start = stage_rate(method, execution, steps, every)
        result[name] = {"images_per_s": rate, "of_bare": rate / floor, "goal": goal, "seconds_to_first_step": start}
        print(name, json.dumps(result[name]), file=sys.stderr, flush=True)
    described = environment.describe(device)
    kept = {key: described[key] for key in ("dmt", "python", "torch", "hardware", "command")}
    print(json.dumps({"environment": kept, "steps": steps, "fast": execution.fast, "figures": result}, indent=1))


if __name__ == "__main__":
    main()
