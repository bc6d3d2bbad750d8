"""Speedup of a training step in several processes over one process, in the same run.

A DMT step on random images of CIFAR-10's shape. Within one launch, the first process steps alone while the others wait,
then each steps independently at the same time as the others, then all step together; this is repeated several times,
and ratios are those of medians. Stepping side by side shows the limit of the machine: cores share memory bandwidth, and
may be two threads of one core. In addition to wall-clock time, processor time is measured, which shows the cost of a
step if others use the same cores. On CPUs, each process has one thread, and batches are smaller. On a GPU, one process
with NCCL shows the overhead: steps are compiled and recorded in both cases.

    python -m benchmarks.several_processes --processes 2 --out benchmarks/results      two cores
    python -m benchmarks.several_processes --processes 1 --device cuda --out benchmarks/results
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from benchmarks.cifar_throughput import CONFIG, random_task
from dmt import files
from dmt.core.execution import Execution
from dmt.core.processes import Processes
from dmt.data.sets import PseudoLabels
from dmt.methods import catalogue
from dmt.models import build
from dmt.runs import environment, joining, timing
from dmt.training.trainer import Trainer, Training

TURNS = 5
"""How often each way is timed, in turn."""


def trainer(execution: Execution, net: str, divisor: int) -> Trainer:
    """Return the trainer of a round of DMT whose batch is divided by ``divisor``."""
    stage = catalogue.plan("dmt", CONFIG.recipe).stages[-1]
    plan = stage.batch_plan(seed=1)
    plan = replace(plan, labeled=plan.labeled // divisor, unlabeled=plan.unlabeled // divisor)
    torch.manual_seed(0)
    task = random_task(400, 4000)
    count = len(task.unlabeled)
    every = torch.ones(count, dtype=torch.bool)
    pseudo = PseudoLabels(torch.randint(0, 10, (count,)), torch.rand(count), every)
    batches = task.batches(task.labeled, pseudo, plan, execution)
    schedule = replace(stage.schedule, labeled=plan.labeled, unlabeled=plan.unlabeled)
    nets: dict[str, nn.Module] = {stage.lines[0]: build.build(task.net_spec(net), seed=0)}
    return Trainer(nets, Training(stage.objective, schedule, 1_000_000, seed=1), batches, execution)


class Spent(NamedTuple):
    """Seconds of one step: wall-clock time, and processor time of this process."""

    clock: float
    processor: float


def spent(stepping: Trainer, steps: int) -> Spent:
    began, given = timing.now(stepping.device), time.process_time()
    for _ in range(steps):
        stepping.advance(stepping.draw())
    clock = timing.now(stepping.device) - began
    return Spent(clock / steps, (time.process_time() - given) / steps)


def measure(processes: Processes, execution: Execution, net: str, divisor: int, steps: int) -> dict[str, list[Spent]]:
    """Time a step alone, side by side and together in every turn; only the first process steps alone."""
    together = trainer(replace(execution, processes=processes), net, divisor)
    alone = trainer(execution, net, divisor)
    found: dict[str, list[Spent]] = {"alone": [], "side by side": [], "together": []}
    for turn in range(TURNS + 1):
        if processes.leads:
            found["alone"].append(spent(alone, steps))
        processes.said(turn)  # the others wait here
        if processes.count > 1:
            found["side by side"].append(spent(alone, steps))
            processes.said(turn)
        found["together"].append(spent(together, steps))
    return {name: each[1:] for name, each in found.items() if each}  # the first turn warms up


def figures(found: dict[str, list[Spent]], count: int) -> dict[str, Any]:
    """Return medians, and how much faster ``count`` processes are than one: together, and each independently."""
    clock = {name: statistics.median(each.clock for each in turns) for name, turns in found.items()}
    processor = {name: statistics.median(each.processor for each in turns) for name, turns in found.items()}
    ratios = {"speedup": clock["alone"] / clock["together"]}
    if "side by side" in clock:
        ratios["limit"] = count * clock["alone"] / clock["side by side"]
        ratios["processor_speedup"] = processor["alone"] / processor["together"]
    return {"seconds": clock, "processor_seconds": processor, **ratios}


def work(asked: argparse.Namespace) -> None:
    with joining.joined() as processes:
        assert processes is not None
        environment.keep_freed_memory()  # as a fit does
        load = os.getloadavg()[0]  # by other programs, before this one begins
        execution = environment.pick_execution(asked.device)
        with execution.active():
            found = measure(processes, execution, asked.net, asked.divisor, asked.steps)
        if processes.leads:
            told = figures(found, processes.count)
            about = {
                "environment": environment.describe(execution.device, processes),
                "net": asked.net,
                "images": 512 // asked.divisor,
                "steps": asked.steps,
                "load_before": load,
                **told,
            }
            name = f"several_processes_{execution.device.type}_{processes.count}.json"
            files.write_json(asked.out / name, about)
            print(told)
            print(f"{told['speedup']:.3f} × as fast in {processes.count} processes as in one")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--net", default=None)
    parser.add_argument("--divisor", type=int, default=None, help="of the batch of 512")
    parser.add_argument("--steps", type=int, default=None, help="in each of the turns")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    on_cpu = asked.device == "cpu"
    asked.net = asked.net or CONFIG.net
    asked.divisor = asked.divisor or (8 if on_cpu else 1)
    asked.steps = asked.steps or (2 if on_cpu else 300)
    if joining.launched():
        work(asked)
        return
    launch = [
        "-m",
        "torch.distributed.run",
        f"--nproc-per-node={asked.processes}",
        "-m",
        "benchmarks.several_processes",
    ]
    told = os.environ | {"OMP_NUM_THREADS": "1"}
    raise SystemExit(subprocess.run([sys.executable, *launch, *sys.argv[1:]], env=told).returncode)


if __name__ == "__main__":
    main()
