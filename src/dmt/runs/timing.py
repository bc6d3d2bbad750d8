"""Measurement of how long operations take on a device, by repeating them."""

import math
import time
from collections.abc import Callable

import torch

from dmt.training.trainer import Trainer

ENOUGH = 8
"""Minimum number of repetitions for a steady mean."""

STEADY = 0.02
"""Relative standard error below which a mean is steady."""


def step_seconds(trainer: Trainer, patience: float) -> float:
    """Measure the seconds of one training step, for at most about ``patience`` seconds after an untimed first step."""
    trainer.advance(trainer.draw())  # the first step allocates memory and, if steps are compiled, compiles
    return seconds(lambda: trainer.advance(trainer.draw()), trainer.device, patience)


def seconds(act: Callable[[], object], device: torch.device, patience: float) -> float:
    """Measure the seconds that an operation takes: the mean of repetitions until it is steady or time is up.

    Args:
        act: the operation. It runs at least once, even if that takes longer than ``patience``.
        device: the device to synchronize with.
        patience: seconds after which no further repetition begins.
    """
    count, total, squares = 0, 0.0, 0.0
    while not count or (total < patience and not _steady(count, total, squares, patience)):
        began = now(device)
        act()
        spent = now(device) - began
        count, total, squares = count + 1, total + spent, squares + spent**2
    return total / count


def now(device: torch.device) -> float:
    """Wait until the device has finished its work, and return a clock in seconds."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def _steady(count: int, total: float, squares: float, patience: float) -> bool:
    # fast operations are repeated for at least a quarter of the patience: a device takes a moment to raise its clock
    if count < ENOUGH or total < patience / 4:
        return False
    mean = total / count
    variance = max(0.0, squares / count - mean**2)
    return math.sqrt(variance / (count - 1)) < STEADY * mean
