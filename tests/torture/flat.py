"""Nothing grows: memory, descriptors and threads over ten thousand steps, and over many fits in one process."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import dmt
from dmt.runs.progress import Silent
from tests.torture import subjects
from tests.torture.parts import Failure, Outcome, Part, Place

STEPS, EVERY = 10_000, 250
FITS = 12
MOST = 16.0
"""MB by which a process may grow after its first quarter; a leak of one image a step would be hundreds."""


class Sample(Silent):
    """What the process holds, every so many steps."""

    def __init__(self) -> None:
        self.memory: list[float] = []
        self.descriptors: list[int] = []
        self.threads: list[int] = []
        self.steps = 0

    def step(self, done: int) -> None:
        self.steps = max(self.steps, done)
        if done % EVERY == 0:
            self.take()

    def take(self) -> None:
        lines = Path("/proc/self/status").read_text().splitlines()
        values = {key: rest.split()[0] for key, _, rest in (line.partition(":") for line in lines) if rest.split()}
        self.memory.append(float(values["RssAnon"]) / 1024)
        self.threads.append(int(values["Threads"]))
        self.descriptors.append(len(list(Path("/proc/self/fd").iterdir())))


class Flat(Part):
    name = "flat"
    about = (
        f"A stage of {STEPS:,} steps on digits, sampled every {EVERY}, and {FITS} whole fits one after the other "
        f"in one process: after the first quarter, memory grows by less than {MOST:.0f} MB, "
        "and descriptors and threads stay."
    )
    seconds = 90.0

    def cases(self, scale: float) -> Sequence[str]:
        return ["steps", "fits"] if scale >= 0.5 else ["fits"]

    def run(self, case: str, at: Place) -> Outcome:
        sample = Sample()
        if case == "steps":
            settings = {"net": "resnet8-4", "batch": 8, "labels": 40, "epochs": STEPS * 8 // 40}
            dmt.fit("digits", out=at.room / "out", method="baseline", settings=settings, device="cpu", watcher=sample)
            if sample.steps < STEPS:
                raise Failure(f"the stage had {sample.steps} steps, not {STEPS}")
            title = f"{sample.steps:,} steps of one stage"
        else:
            settings = {key: value for key, _, value in (pair.partition("=") for pair in subjects.DIGITS.split())}
            for _ in range(FITS):
                with tempfile.TemporaryDirectory(dir=at.room) as out:
                    dmt.fit("digits", out=Path(out) / "run", settings=settings, device="cpu", watcher=Silent())
                sample.take()
            title = f"{FITS} fits in one process"
        return Outcome(title, figures=_judged(sample, case))


def _judged(sample: Sample, case: str) -> dict[str, float]:
    late = len(sample.memory) // 4
    grown = _mean(sample.memory[-late:]) - _mean(sample.memory[late : 2 * late])
    figures = {
        f"{case}: MB grown after the first quarter": grown,
        f"{case}: descriptors more at the end": float(sample.descriptors[-1] - sample.descriptors[late]),
        f"{case}: threads more at the end": float(sample.threads[-1] - sample.threads[late]),
    }
    if grown > MOST or any(value > 0 for name, value in figures.items() if "MB" not in name):
        raise Failure(f"it grows: {figures}; memory {sample.memory}")
    return figures


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
