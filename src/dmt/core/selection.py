"""Select the most confident pseudo labels, exactly as many as asked for."""

import math

import torch
from torch import Tensor

from dmt.types import IGNORE


def quota(fraction: float, count: int) -> int:
    """Return floor(α·n + 0.5), the number of sites that fraction α keeps of n. The only rounding rule for fractions."""
    if not 0.0 <= fraction <= 1.0:
        raise ValueError(f"a fraction must be within [0, 1], not {fraction}")
    # α·n is rounded first, so that a product that is k + 0.5 in decimal is not slightly less in binary
    return min(count, math.floor(round(fraction * count, 9) + 0.5))


def top(confidence: Tensor, fraction: float) -> Tensor:
    """Return a mask (n,) of the ``quota(fraction, n)`` most confident sites; of ties, the earlier sites are kept."""
    if confidence.ndim != 1:
        raise ValueError(f"confidence must be (n,), not {tuple(confidence.shape)}")
    if not bool(torch.isfinite(confidence).all()):  # NaN would be sorted first
        raise ValueError("confidence must be finite")
    order = torch.argsort(confidence, descending=True, stable=True)
    mask = torch.zeros_like(confidence, dtype=torch.bool)
    mask[order[: quota(fraction, len(confidence))]] = True
    return mask


def top_per_class(confidence: Tensor, labels: Tensor, fraction: float, classes: int) -> Tensor:
    """Apply `top` within each class, so that rare classes keep their share; return a mask (n,)."""
    if labels.shape != confidence.shape or labels.is_floating_point():
        raise ValueError(f"labels must be {tuple(confidence.shape)} integers, not {tuple(labels.shape)} {labels.dtype}")
    if len(labels) and not IGNORE <= int(labels.min()) <= int(labels.max()) < classes:
        raise ValueError(f"labels must be 0 … {classes - 1}, or {IGNORE} where there is none")
    mask = torch.zeros_like(confidence, dtype=torch.bool)
    for label in range(classes):
        members = (labels == label).nonzero().squeeze(1)
        mask[members[top(confidence[members], fraction)]] = True
    return mask


def thresholds(confidence: Tensor, labels: Tensor, fraction: float, classes: int) -> Tensor:
    """Return the lowest confidence that `top_per_class` keeps in each class, (C,); 1 where it keeps none."""
    kept = top_per_class(confidence, labels, fraction, classes)
    found = torch.ones(classes, dtype=confidence.dtype, device=confidence.device)
    return found.scatter_reduce(0, labels[kept], confidence[kept], "amin", include_self=True)
