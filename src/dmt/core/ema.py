"""A slow copy of a net: the exponential moving average of its parameters and BatchNorm statistics."""

import copy

import torch
from torch import Tensor, nn


class SlowCopy:
    """θ' ← d·θ' + (1 − d)·θ after every step, with warm-up d = min(decay, (1 + t)/(10 + t)).

    The slow net keeps ``decay`` of itself. (The paper's code had the factors swapped, so that its "EMA net" was the
    raw net: see docs/decisions.) Integer buffers, BatchNorm's step counters, are copied.
    """

    def __init__(self, net: nn.Module, decay: float) -> None:
        if not 0.0 <= decay < 1.0:
            raise ValueError(f"decay must be in [0, 1), not {decay}")
        self.net = copy.deepcopy(net).requires_grad_(False).eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, net: nn.Module, step: int) -> None:
        """Move towards ``net``; ``step`` counts from 0 and drives the warm-up."""
        decay = min(self.decay, (1.0 + step) / (10.0 + step))
        slow, fast = _split(self.net), _split(net)
        torch._foreach_lerp_(slow[0], fast[0], 1.0 - decay)
        for mine, theirs in zip(slow[1], fast[1], strict=True):
            mine.copy_(theirs)


def _split(net: nn.Module) -> tuple[list[Tensor], list[Tensor]]:
    """The net's float tensors, and the others."""
    tensors = [*net.parameters(), *net.buffers()]
    return [t for t in tensors if t.is_floating_point()], [t for t in tensors if not t.is_floating_point()]
