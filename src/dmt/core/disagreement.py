"""Uncertainty of several nets at a site, and the part of it that comes from disagreement between them."""

import math

import torch
from torch import Tensor


def doubt(probabilities: Tensor) -> Tensor:
    """Return the total uncertainty: the entropy of the mean probabilities over log C, (N, *S) in [0, 1].

    Args:
        probabilities: (nets, N, C, *S).
    """
    return _entropy(probabilities.mean(0), 1) / math.log(probabilities.shape[2])


def disagreement(probabilities: Tensor) -> Tensor:
    """Return the part of `doubt` due to disagreement: the Jensen-Shannon divergence over log C, (N, *S) in [0, 1]."""
    alone = _entropy(probabilities, 2).mean(0) / math.log(probabilities.shape[2])
    return (doubt(probabilities) - alone).clamp(min=0.0)


def _entropy(probabilities: Tensor, dim: int) -> Tensor:
    result: Tensor = torch.special.entr(probabilities).sum(dim)
    return result
