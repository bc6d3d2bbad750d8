"""Ensemble of several nets by the mean of their probabilities."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn


class MeanOfNets(nn.Module):
    """Return the logarithm of the mean probabilities, (N, C, *S) float32, so that its softmax is that mean.

    Args:
        nets: nets by their line, all for the same images and classes.
    """

    def __init__(self, nets: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self.nets = nn.ModuleDict(nets)

    def forward(self, images: Tensor) -> Tensor:
        total: Tensor | None = None
        for net in self.nets.values():
            said = net(images).float().log_softmax(1)
            total = said if total is None else torch.logaddexp(total, said)
        assert total is not None
        return total - math.log(len(self.nets))
