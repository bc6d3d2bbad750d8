"""Mixup of images and of their labels or weights, with one λ for the whole batch or one per sample."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dmt.core import trees


class Mix(NamedTuple):
    """One draw of mixup for a batch: the coefficient λ, and each sample's partner."""

    coefficient: Tensor  # λ, 0-d
    partners: Tensor  # (N,) int64, a permutation

    def blend(self, values: Tensor) -> Tensor:
        """Return λ·v + (1 − λ)·v_π along the first dimension, for images or weights."""
        return self.coefficient * values + (1.0 - self.coefficient) * values[self.partners]


class SampleMix(NamedTuple):
    """One draw of mixup for a batch with a separate λ for every sample."""

    coefficients: Tensor  # (N,)
    partners: Tensor  # (N,) int64, a permutation

    def blend(self, values: Tensor) -> Tensor:
        """Return λ_n·v_n + (1 − λ_n)·v_π(n) along the first dimension, for images or soft labels."""
        own = self.coefficients.view(-1, *[1] * (values.dim() - 1))
        return own * values + (1.0 - own) * values[self.partners]


def draw(count: int, alpha: float, rng: np.random.Generator, *, dominant: bool, device: torch.device) -> Mix:
    """Draw λ ~ Beta(α, α) and a permutation of the batch.

    Args:
        count: batch size.
        alpha: α, both parameters of the Beta distribution.
        rng: random numbers to draw from.
        dominant: use max(λ, 1 − λ), so that a sample stays closer to itself than to its partner, as in the paper's
            rounds, but not in its Baseline.
        device: device of the result.
    """
    coefficient = float(rng.beta(alpha, alpha))
    if dominant:
        coefficient = max(coefficient, 1.0 - coefficient)
    return Mix(trees.send(coefficient, device), trees.send(rng.permutation(count), device))


def draw_each(count: int, alpha: float, rng: np.random.Generator, device: torch.device) -> SampleMix:
    """Draw λ ~ Beta(α, α), replaced by max(λ, 1 − λ), for every sample, and a permutation of the batch."""
    coefficients = rng.beta(alpha, alpha, count)
    dominant = np.maximum(coefficients, 1.0 - coefficients).astype(np.float32)
    return SampleMix(trees.send(dominant, device), trees.send(rng.permutation(count), device))
