"""Random numbers of any shape from a few that were drawn: tensor code without a generator.

How many channels features have is not known when a step is drawn. So seeds are drawn, and become as many numbers as
are needed by a hash of (seed, place): equal on every device and in every process, and part of a recorded step.
"""

import numpy as np
import torch
from torch import Tensor

from dmt.core import trees

_LOW = 2**31 - 1  # products of 31 and 32 bits fit int64


def draw(shape: tuple[int, ...], rng: np.random.Generator, device: torch.device) -> Tensor:
    """Seeds, int64."""
    return trees.send(rng.integers(_LOW, size=shape), device)


def uniform(seeds: Tensor, count: int) -> Tensor:
    """Numbers in [0, 1), (*seeds.shape, count) float32."""
    places = torch.arange(count, device=seeds.device)
    return (_mixed(_mixed(places) ^ seeds[..., None]) >> 7).float() / 2**24


def _mixed(values: Tensor) -> Tensor:
    """Every bit of the result depends on every bit of a value of 31 bits."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        values = ((values ^ (values >> shift)) * factor) & _LOW
    return values ^ (values >> 16)
