"""Any number of random values from a few drawn seeds, as pure tensor code without a generator.

When a step's randomness is drawn, the number of feature channels is not known yet. So only seeds are drawn, and a hash
of (seed, position) turns them into as many values as needed: the same on every device and in every process, and
possible inside a captured CUDA graph.
"""

import numpy as np
import torch
from torch import Tensor

from dmt.core import trees

_LOW = 2**31 - 1  # the lower 31 bits: their products with factors of 32 bits fit into int64


def draw(shape: tuple[int, ...], rng: np.random.Generator, device: torch.device) -> Tensor:
    """Draw seeds of this shape, int64 on the device."""
    return trees.send(rng.integers(_LOW, size=shape), device)


def uniform(seeds: Tensor, count: int) -> Tensor:
    """Return ``count`` numbers in [0, 1) for each seed, (*seeds.shape, count) float32."""
    places = torch.arange(count, device=seeds.device)
    return (_mixed(_mixed(places) ^ seeds[..., None]) >> 7).float() / 2**24


def _mixed(values: Tensor) -> Tensor:
    """Hash 31-bit integers: every bit of the result depends on every bit of the value."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        values = ((values ^ (values >> shift)) * factor) & _LOW
    return values ^ (values >> 16)
