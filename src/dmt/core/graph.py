"""A graph over images by their features, and labels that spread along it.

Nearest neighbors are found block by block, so that all pairs of 50,000 images are never in memory; what spreads is one
row of numbers for each image.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from dmt.types import IGNORE

BLOCK = 1 << 25
"""Similarities in memory at once."""

ROUNDS = 20
"""Of conjugate gradients: far more than the order of labels needs."""


@dataclass(frozen=True)
class Graph:
    """How labels spread.

    Attributes:
        neighbors: k, how many of each image are kept.
        reach: α, from 0 (nowhere) to 1: how much an image takes from its neighbors.
        power: of the cosine that weighs a neighbor.
    """

    neighbors: int = 50
    reach: float = 0.99
    power: float = 3.0


@torch.no_grad()
def nearest(features: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Cosines and positions, both (N, k), of the ``count`` rows most like each row, itself not among them."""
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
    """(N, C) how much of each class reaches each row: Z of (1 − αS)Z = Y, never negative.

    S = D^(−½)·W·D^(−½), W the cosines to their power, in both directions; Y has a 1 for each given label.

    Args:
        cosines: (N, k), of the nearest.
        neighbors: (N, k), who they are.
        given: (N,) labels, ``IGNORE`` where there is none.
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
    """Conjugate gradients, column by column: X of A·X = B for a symmetric, positive A."""
    found, rest = torch.zeros_like(wanted), wanted.clone()
    way, size = rest.clone(), rest.square().sum(0)
    for _ in range(ROUNDS):
        moved = operator(way)
        length = size / (way * moved).sum(0).clamp_min(1e-300)
        found, rest = found + length * way, rest - length * moved
        before, size = size, rest.square().sum(0)
        way = rest + size / before.clamp_min(1e-300) * way
    return found
