"""How long things take on this device: measured by doing them for a while."""

import math
import time
from collections.abc import Callable

import torch

from dmt.training.trainer import Trainer

ENOUGH = 8
"""Repetitions from which on a mean may be called steady."""

STEADY = 0.02
"""Error of a mean, as a share of it, below which repeating tells nothing more."""


def step_seconds(trainer: Trainer, patience: float) -> float:
    """Seconds of one training step, measured for at most about ``patience`` seconds after a first one."""
    trainer.advance(trainer.draw())  # the first step allocates, and compiles where that is asked for
    return seconds(lambda: trainer.advance(trainer.draw()), trainer.device, patience)


def seconds(act: Callable[[], object], device: torch.device, patience: float) -> float:
    """Seconds that doing something takes: the mean of repetitions, until it is steady or patience is at its end.

    What takes longer than all of the patience is done once.
    """
    count, total, squares = 0, 0.0, 0.0
    while not count or (total < patience and not _steady(count, total, squares, patience)):
        began = now(device)
        act()
        spent = now(device) - began
        count, total, squares = count + 1, total + spent, squares + spent**2
    return total / count


def now(device: torch.device) -> float:
    """Seconds on a clock, once all that was asked of the device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def _steady(count: int, total: float, squares: float, patience: float) -> bool:
    # quick ones go on for a quarter of the patience: clocks of a device take a moment to rise
    if count < ENOUGH or total < patience / 4:
        return False
    mean = total / count
    variance = max(0.0, squares / count - mean**2)
    return math.sqrt(variance / (count - 1)) < STEADY * mean
