"""How long a plan will take, from a few timed steps on made-up images. Trains nothing that is kept."""

import time

import torch

from dmt.core.execution import Execution
from dmt.core.schedule import Schedule
from dmt.models import build
from dmt.models.build import NetSpec
from dmt.objectives.truth import Supervised
from dmt.training.trainer import Trainer
from dmt.types import Batch


class _MadeUp:
    """The same random images in every step."""

    def __init__(self, size: int, shape: tuple[int, int, int], device: torch.device) -> None:
        self.size = size
        truth = torch.zeros(size, dtype=torch.int64, device=device)
        self._batch = Batch(torch.rand(size, *shape, device=device), truth)

    def draw(self, step: int) -> None:
        return None

    def make(self, drawn: None) -> Batch:
        return self._batch


def passes_per_second(spec: NetSpec, batch: int, execution: Execution, patience: float = 2.0) -> float:
    """Training passes (forward, backward and update) over images in a second, measured for about ``patience`` s.

    On a CPU a smaller batch than the real one is timed, since there the rate hardly depends on it.
    """
    size = batch if execution.on_cuda else min(batch, 64)
    schedule = Schedule(epochs=1, rate=1e-6, rate_ramp="constant", labeled=size)
    batches = _MadeUp(size, spec.shape, execution.device)
    with execution.active():
        return _timed(spec, size, schedule, batches, execution, patience)


def _timed(
    spec: NetSpec, size: int, schedule: Schedule, batches: _MadeUp, execution: Execution, patience: float
) -> float:
    trainer = Trainer([build.build(spec, seed=0)], Supervised(), schedule, batches, 10**6, seed=0, execution=execution)
    trainer.advance(trainer.draw())  # the first step allocates, and compiles where that is asked for
    steps, began = 0, _now(execution.device)
    while steps < 3 or _now(execution.device) - began < patience:
        trainer.advance(trainer.draw())
        steps += 1
    return steps * size / (_now(execution.device) - began)


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
