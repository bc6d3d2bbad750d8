"""Label propagation over a nearest-neighbor graph of image features.

Nearest neighbors are found block by block, so that the similarities of all pairs of 50,000 images are never in memory
at once. What is propagated is one row of C numbers per image.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from dmt.types import IGNORE

BLOCK = 1 << 25
"""Number of similarities that are held in memory at once."""

ROUNDS = 20
"""Iterations of conjugate gradients: far more than the ranking of labels needs."""


@dataclass(frozen=True)
class Graph:
    """Parameters of label propagation.

    Attributes:
        neighbors: k, number of nearest neighbors per image.
        reach: α in [0, 1): how much an image takes from its neighbors; labels do not spread at 0.
        power: exponent of the cosine similarity that gives the weight of an edge.
    """

    neighbors: int = 50
    reach: float = 0.99
    power: float = 3.0


@torch.no_grad()
def nearest(features: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the cosines and positions, (N, k) each, of the nearest neighbors of each row, excluding itself.

    Args:
        features: (N, F), N at least 1.
        count: number of neighbors; k is this or N − 1, whichever is smaller.
    """
    rows = F.normalize(features.float(), dim=1)
    count = min(count, len(rows) - 1)
    found = []
    for start in range(0, len(rows), max(1, BLOCK // len(rows))):
        block = rows[start : start + max(1, BLOCK // len(rows))]
        alike = block @ rows.T
        mine = torch.arange(len(block), device=rows.device)
        alike[mine, start + mine] = -torch.inf
        found.append(alike.topk(count, dim=1))
    return torch.cat([each.values for each in found]), torch.cat([each.indices for each in found])


@torch.no_grad()
def spread(cosines: Tensor, neighbors: Tensor, given: Tensor, classes: int, graph: Graph) -> Tensor:
    """Propagate labels: return the solution Z of (1 − αS)Z = Y, (N, C), clamped to 0 or more.

    S = D^(−½)·W·D^(−½), where W are the cosines to their power, symmetrized, and D are its row sums; Y is one-hot in
    the rows of given labels and 0 elsewhere.

    Args:
        cosines: (N, k), cosines to the nearest neighbors.
        neighbors: (N, k), positions of these neighbors.
        given: (N,) labels, ``IGNORE`` where there is none.
        classes: C.
        graph: parameters of the propagation.
    """
    weights = cosines.double().clamp_min(0.0) ** graph.power / 2
    degree = weights.sum(1).index_add(0, neighbors.flatten(), weights.flatten())
    scale = degree.clamp_min(1e-12).rsqrt()[:, None]

    def operator(values: Tensor) -> Tensor:
        told, taken = values * scale, torch.zeros_like(values)
        for column, weight in zip(neighbors.unbind(1), weights.unbind(1), strict=True):
            taken += weight[:, None] * told[column]
            taken.index_add_(0, column, weight[:, None] * told)
        return values - graph.reach * scale * taken

    truth = F.one_hot(given.clamp_min(0), classes).double() * (given != IGNORE)[:, None]
    return _solved(operator, truth).clamp_min(0.0)


def _solved(operator: Callable[[Tensor], Tensor], wanted: Tensor) -> Tensor:
    """Solve A·X = B, column by column, by conjugate gradients for a symmetric positive definite A."""
    found, rest = torch.zeros_like(wanted), wanted.clone()
    way, size = rest.clone(), rest.square().sum(0)
    for _ in range(ROUNDS):
        moved = operator(way)
        length = size / (way * moved).sum(0).clamp_min(1e-300)
        found, rest = found + length * way, rest - length * moved
        before, size = size, rest.square().sum(0)
        way = rest + size / before.clamp_min(1e-300) * way
    return found
