"""How long things take on this device: measured by doing them for a while."""

import time
from collections.abc import Callable

import torch

from dmt.training.trainer import Trainer

LEAST = 2
"""Repetitions, however long one takes."""


def step_seconds(trainer: Trainer, patience: float) -> float:
    """Seconds of one training step, measured for about ``patience`` seconds."""
    trainer.advance(trainer.draw())  # the first step allocates, and compiles where that is asked for
    return seconds(lambda: trainer.advance(trainer.draw()), trainer.device, patience)


def seconds(act: Callable[[], object], device: torch.device, patience: float) -> float:
    """Seconds that doing something takes, measured for about ``patience`` seconds."""
    count, began = 0, _now(device)
    while count < LEAST or _now(device) - began < patience:
        act()
        count += 1
    return (_now(device) - began) / count


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
