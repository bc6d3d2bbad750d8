"""How long a plan will take, from a few timed steps on made-up images. Trains nothing that is kept."""

import time

import torch

from dmt.core.schedule import Schedule
from dmt.models import build
from dmt.models.build import NetSpec
from dmt.objectives.truth import Supervised
from dmt.training.trainer import Trainer
from dmt.types import Batch


def passes_per_second(spec: NetSpec, batch: int, device: torch.device, patience: float = 2.0) -> float:
    """Training passes (forward, backward and update) over images in a second, measured for about ``patience`` s.

    On a CPU a smaller batch than the real one is timed, since there the rate hardly depends on it.
    """
    size = batch if device.type == "cuda" else min(batch, 64)
    schedule = Schedule(epochs=1, rate=1e-6, rate_ramp="constant", labeled=size)
    trainer = Trainer([build.build(spec, seed=0)], Supervised(), schedule, 10**6, seed=0, device=device)
    images = torch.rand(size, *spec.shape, device=device)
    made_up = Batch(images, torch.zeros(size, dtype=torch.int64, device=device))
    trainer.advance(made_up)  # the first step allocates
    steps, began = 0, _now(device)
    while steps < 3 or _now(device) - began < patience:
        trainer.advance(made_up)
        steps += 1
    return steps * size / (_now(device) - began)


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
