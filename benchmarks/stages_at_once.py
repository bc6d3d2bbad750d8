"""Speedup of training a pair with two workers instead of one process, each with one thread.

DMT with a pair of nets on digits: whole runs with ``--jobs 1`` and ``--jobs 2`` in turn, several times; ratios are
those of medians. Starting workers takes some seconds, whatever they do afterwards, so the time from the first stage to
the end is recorded in addition to that of the whole run. Two CPU cores stand for two GPUs here.

If others use the machine, which the load shows, wall-clock time is misleading: two processes get more of its cores than
one. Then the ratio of one process's CPU time to that of each of two workers shows the speedup on two free cores.

    python -m benchmarks.stages_at_once --out benchmarks/results
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

import torch

import dmt
from dmt import files
from dmt.runs import environment
from dmt.runs.progress import Silent

JOBS = (1, 2)
WHAT = ("whole", "training", "cpu")


class Clock(Silent):
    """A watcher that records when the first stage began."""

    def __init__(self) -> None:
        self.began: float | None = None

    def stage(self, title: str, steps: int, done: int, work: float) -> None:
        self.began = time.perf_counter() if self.began is None else self.began


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its child processes that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def seconds(jobs: int, out: Path, epochs: int) -> dict[str, float]:
    """Return the seconds of a whole run, those from its first stage on, and CPU time per worker."""
    watcher, began, before = Clock(), time.perf_counter(), cpu_seconds()
    settings = {"shape": "pair", "epochs": epochs, "epochs_round": max(1, epochs // 10)}
    dmt.fit("digits", out=out, settings=settings, baseline=False, device="cpu", watcher=watcher, jobs=jobs)
    ended = time.perf_counter()
    assert watcher.began is not None
    return {"whole": ended - began, "training": ended - watcher.began, "cpu": (cpu_seconds() - before) / jobs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=100, help="of the first nets; a round has a tenth")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[int, list[dict[str, float]]] = {jobs: [] for jobs in JOBS}
    loads = []
    for turn in range(asked.turns):
        for jobs in JOBS:
            loads.append(os.getloadavg()[0])
            with tempfile.TemporaryDirectory() as folder:
                found[jobs].append(seconds(jobs, Path(folder) / "run", asked.epochs))
            print(f"turn {turn + 1}, {jobs} at once: {found[jobs][-1]}", flush=True)
    medians = {
        jobs: {what: statistics.median(each[what] for each in runs) for what in WHAT} for jobs, runs in found.items()
    }
    speedup = {what: medians[1][what] / medians[2][what] for what in WHAT}
    about = {
        "environment": environment.describe(torch.device("cpu")),
        "load": loads,
        "epochs": asked.epochs,
        "seconds": {str(jobs): runs for jobs, runs in found.items()},
        "speedup": speedup,
    }
    files.write_json(asked.out / "stages_at_once.json", about)
    print(
        f"two at once: {speedup['training']:.2f} × as fast, {speedup['whole']:.2f} × with their start, "
        f"{speedup['cpu']:.2f} × by CPU time"
    )


if __name__ == "__main__":
    main()
