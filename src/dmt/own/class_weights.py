"""How much rare classes should count in masks where others have most of the pixels."""

import torch

from dmt.data import sets
from dmt.tasks.base import Task

RARE = 10
"""How many times as many pixels the most frequent class has as the rarest before weights are tried."""

MOST = 10.0
"""How many times as much a rare class may count as a frequent one: labels of few pixels are noisy."""


def of(task: Task) -> tuple[float, ...] | None:
    """A class counts by 1/√(its pixels), so that the mean over all labeled pixels is 1; None if none is rare."""
    if not task.pixels:
        return None
    counts = sets.counts(task.labeled.labels, len(task.classes)).double()
    there = counts > 0
    if not there.any() or counts.max() < RARE * counts[there].min():
        return None
    found = torch.where(there, counts.clamp_min(1.0), counts.max()).rsqrt()
    found = found.clamp_max(MOST * found.min())
    found *= counts.sum() / (found * counts).sum()
    return tuple(float(f"{each:.3g}") for each in found.tolist())
