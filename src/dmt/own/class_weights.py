"""Class weights for masks in which some classes have far fewer pixels than others."""

import torch

from dmt.data import sets
from dmt.tasks.base import Task

RARE = 10
"""Class weights are tried if the most frequent class has at least this many times the pixels of the rarest."""

MOST = 10.0
"""Maximum ratio of a rare class's weight to that of the most frequent one, since few labeled pixels are noisy."""


def of(task: Task) -> tuple[float, ...] | None:
    """Return weights proportional to 1/√(pixels of the class), with mean 1 over all labeled pixels.

    Returns:
        One weight per class, or None if no class is rare or images, not pixels, get labels.
    """
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
