"""Soft targets: one-hot labels, sharpening, and alignment with a known distribution of classes."""

from torch import Tensor

SMALL = 1e-6


def one_hot(labels: Tensor, classes: int) -> Tensor:
    """Return labels (N,) as one-hot rows (N, C) float32; zeros where there is no label."""
    numbers = labels.new_ones(classes).cumsum(0) - 1
    return (labels[:, None] == numbers).float()


def sharpened(probabilities: Tensor, temperature: float) -> Tensor:
    """Sharpen probabilities (N, C) to p_c^(1/T) / Σ_k p_k^(1/T); a temperature T below 1 makes them more confident."""
    return normalized(probabilities ** (1.0 / temperature))


def aligned(probabilities: Tensor, wanted: Tensor, found: Tensor) -> Tensor:
    """Return p_c·(wanted_c + 10⁻⁶) / (found_c + 10⁻⁶), normalized, (N, C): classes predicted too often get less.

    Args:
        probabilities: (N, C).
        wanted: (C,), the distribution of classes to align with.
        found: (C,), the distribution of classes as predicted.
    """
    return normalized(probabilities * ((wanted + SMALL) / (found + SMALL)))


def normalized(values: Tensor) -> Tensor:
    """Scale nonnegative values to sum to 1 along the last dimension; all-zero rows stay zero."""
    return values / values.sum(-1, keepdim=True).clamp_min(1e-12)
