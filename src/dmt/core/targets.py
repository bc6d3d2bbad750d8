"""Soft targets: probabilities as labels, sharpened, or brought closer to a known distribution of classes."""

from torch import Tensor

SMALL = 1e-6


def one_hot(labels: Tensor, classes: int) -> Tensor:
    """(N, C) float32 of labels (N,); zeros where there is no label."""
    numbers = labels.new_ones(classes).cumsum(0) - 1
    return (labels[:, None] == numbers).float()


def sharpened(probabilities: Tensor, temperature: float) -> Tensor:
    """p_c^(1/T) / Σ: closer to one class for a temperature below 1. (N, C)."""
    return normalized(probabilities ** (1.0 / temperature))


def aligned(probabilities: Tensor, wanted: Tensor, found: Tensor) -> Tensor:
    """p_c·(wanted_c + 10⁻⁶) / (found_c + 10⁻⁶) / Σ: classes that are given too often get less. (N, C).

    Args:
        wanted: (C,), how often each class should come up.
        found: (C,), how often it does.
    """
    return normalized(probabilities * ((wanted + SMALL) / (found + SMALL)))


def normalized(values: Tensor) -> Tensor:
    """Values that are not negative, scaled so that those of the last dimension have the sum 1; zeros stay zeros."""
    return values / values.sum(-1, keepdim=True).clamp_min(1e-12)
