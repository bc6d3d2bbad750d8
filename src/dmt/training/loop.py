"""The training loop of a stage: steps, journal and checkpoints, from the first step or from where it stopped."""

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
    """When to save and to stop, and whom to notify.

    Attributes:
        checkpoint_every: seconds between checkpoints.
        stop: is called after every step; if it returns true, a checkpoint is saved and training stops.
        tell: is called after every step with the number of steps done.
        before_saving: is called before every checkpoint, e.g. to wait until the files it depends on are on disk.
    """

    checkpoint_every: float
    stop: Callable[[], bool]
    tell: Callable[[int], None]
    before_saving: Callable[[], None] = lambda: None


def interval_of(steps: int) -> int:
    """Return the number of steps between journal lines: a fiftieth of the stage, but 10 to 100 steps."""
    return max(10, min(steps // 50, 100))


class Stopwatch:
    """Timing of an interval. It is for information only and does not affect results."""

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
    """Train until the last step, resuming from a checkpoint if there is one, with the same result.

    Returns:
        False if training was stopped before the last step.
    """
    with torch.random.fork_rng(devices=[trainer.device] if trainer.execution.on_cuda else []):
        return _fit(trainer, checkpoint, journal, pace)


def _fit(trainer: Trainer, checkpoint: Checkpoint, journal: Journal, pace: Pace) -> bool:
    ledger, trained = Ledger(trainer.device), 0.0
    if state := checkpoint.restore(trainer):
        ledger.restore(state["ledger"])
        trained = state["seconds"]
    journal.rewind(trainer.step)
    trainer.align()
    if state is not None and state["done"]:  # already saved: files that the digests refer to must not be rewritten
        return True
    interval = interval_of(trainer.steps)
    if trainer.execution.on_cuda:
        torch.cuda.reset_peak_memory_stats(trainer.device)  # a stage's own peak, not that of a larger one before it
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
    """Take part in a stage that the first process fits with `fit`, which alone writes files.

    Args:
        stop: is called after every step; it must agree with the first process on when to stop.
    """
    with torch.random.fork_rng(devices=[trainer.device] if trainer.execution.on_cuda else []):
        trainer.align()
        while trainer.step < trainer.steps:
            trainer.advance(trainer.draw())
            if trainer.step < trainer.steps and stop():
                return


def peak_memory(device: torch.device) -> float:
    """Return the peak memory so far in bytes: GPU memory on CUDA, else resident memory of this process.

    Returns 0 on Windows, where it is not measured.
    """
    if device.type == "cuda":
        return float(torch.cuda.max_memory_allocated(device))
    if sys.platform == "win32":
        return 0.0
    import resource  # exists on Unix only

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak if sys.platform == "darwin" else peak * 1024)
