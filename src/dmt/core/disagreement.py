"""How unsure several nets are of a site, and how much of that is because they disagree with each other."""

import math

import torch
from torch import Tensor


def doubt(probabilities: Tensor) -> Tensor:
    """(N, *S) in [0, 1]: the entropy of what the nets say in the mean. Any reason to be unsure counts.

    Args:
        probabilities: (nets, N, C, *S).
    """
    return _entropy(probabilities.mean(0), 1) / math.log(probabilities.shape[2])


def disagreement(probabilities: Tensor) -> Tensor:
    """(N, *S) in [0, 1]: the part of `doubt` that no net has by itself, i.e. their Jensen-Shannon divergence."""
    alone = _entropy(probabilities, 2).mean(0) / math.log(probabilities.shape[2])
    return (doubt(probabilities) - alone).clamp(min=0.0)


def _entropy(probabilities: Tensor, dim: int) -> Tensor:
    result: Tensor = torch.special.entr(probabilities).sum(dim)
    return result
