"""The loop of a stage: batch, step, journal, checkpoint; from the first step or from where it stopped."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from dmt.training.checkpoint import Checkpoint
from dmt.training.journal import Journal
from dmt.training.ledger import Ledger
from dmt.training.trainer import Trainer


@dataclass(frozen=True)
class Pace:
    """When to save, when to stop, whom to tell.

    Attributes:
        checkpoint_every: seconds between checkpoints.
        stop: asked after every step; true ends the stage at a checkpoint.
        tell: called after every step with the number of steps done.
        before_saving: called before every checkpoint, e.g. to see that what it depends on is on disk.
    """

    checkpoint_every: float
    stop: Callable[[], bool]
    tell: Callable[[int], None]
    before_saving: Callable[[], None] = lambda: None


def interval_of(steps: int) -> int:
    """Steps between journal lines: about fifty lines a stage, and one every ten to a hundred steps."""
    return max(10, min(steps // 50, 100))


class Stopwatch:
    """Where an interval's time went. Nothing here enters a result."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self.waiting = 0.0
        self.images = 0

    def seconds(self) -> float:
        return max(time.perf_counter() - self._start, 1e-9)

    def summary(self, device: torch.device) -> dict[str, float]:
        seconds = self.seconds()
        return {
            "seconds": seconds,
            "images_per_s": self.images / seconds,
            "waiting": self.waiting / seconds,
            "peak_memory_mb": peak_memory(device) / 2**20,
        }


def fit(trainer: Trainer, checkpoint: Checkpoint, journal: Journal, pace: Pace) -> bool:
    """Train until the last step. Returns False if stopped before; calling again resumes, to the same end."""
    with torch.random.fork_rng(devices=[trainer.device] if trainer.execution.on_cuda else []):
        return _fit(trainer, checkpoint, journal, pace)


def _fit(trainer: Trainer, checkpoint: Checkpoint, journal: Journal, pace: Pace) -> bool:
    ledger, trained = Ledger(trainer.device), 0.0
    if state := checkpoint.restore(trainer):
        ledger.restore(state["ledger"])
        trained = state["seconds"]
    journal.rewind(trainer.step)
    trainer.align()
    if state is not None and state["done"]:  # saved already: its files are not written again beside their digests
        return True
    interval = interval_of(trainer.steps)
    began, saved, watch = time.perf_counter(), time.perf_counter(), Stopwatch()

    def save() -> None:
        trainer.require_finite(ledger.sums())
        pace.before_saving()
        checkpoint.save(trainer, ledger=ledger.state(), seconds=trained + time.perf_counter() - began)

    while trainer.step < trainer.steps:
        asked = time.perf_counter()
        inputs = trainer.draw()
        watch.waiting += time.perf_counter() - asked
        numbers = trainer.advance(inputs)
        ledger.add(trainer.logged, numbers)
        watch.images += trainer.schedule.batch
        if trainer.step % interval == 0 or trainer.step == trainer.steps:
            means = ledger.means()
            trainer.require_finite(means)
            journal.write("interval", step=trainer.step, **means, **watch.summary(trainer.device))
            watch = Stopwatch()
        pace.tell(trainer.step)
        if trainer.step < trainer.steps and pace.stop():
            save()
            return False
        if trainer.step < trainer.steps and time.perf_counter() - saved > pace.checkpoint_every:
            save()
            saved = time.perf_counter()
    trainer.finish()
    save()
    return True


def follow(trainer: Trainer, stop: Callable[[], bool]) -> None:
    """Take part in what another process fits. It decides when to stop, and it alone keeps anything."""
    with torch.random.fork_rng(devices=[trainer.device] if trainer.execution.on_cuda else []):
        trainer.align()
        while trainer.step < trainer.steps:
            trainer.advance(trainer.draw())
            if trainer.step < trainer.steps and stop():
                return


def peak_memory(device: torch.device) -> float:
    """Bytes: of the GPU where there is one, of this process otherwise; 0 where the system does not tell."""
    if device.type == "cuda":
        return float(torch.cuda.max_memory_allocated(device))
    if sys.platform == "win32":
        return 0.0
    import resource  # exists on Unix only

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak if sys.platform == "darwin" else peak * 1024)
