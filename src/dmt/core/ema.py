"""A slow copy of a net: the exponential moving average of its parameters and BatchNorm statistics."""

import copy

import torch
from torch import Tensor, nn


class SlowCopy:
    """A copy that follows its net: θ' ← d·θ' + (1 − d)·θ after every step, d = min(decay, (1 + t)/(10 + t)).

    The slow net keeps ``decay`` of itself. (The paper's code had the factors swapped, so that its "EMA net" was the
    raw net: see docs/decisions.) Integer buffers, BatchNorm's step counters, are copied.
    """

    def __init__(self, net: nn.Module, decay: float) -> None:
        if not 0.0 <= decay < 1.0:
            raise ValueError(f"decay must be in [0, 1), not {decay}")
        self.net = copy.deepcopy(net).requires_grad_(False).eval()
        self.decay = decay
        self._pairs = _pairs(self.net, net)

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Move towards the net; ``step`` counts from 0 and drives the warm-up."""
        decay = min(self.decay, (1.0 + step) / (10.0 + step))
        torch._foreach_lerp_(*self._pairs[0], 1.0 - decay)
        for mine, theirs in zip(*self._pairs[1], strict=True):
            mine.copy_(theirs)


def _pairs(slow: nn.Module, fast: nn.Module) -> tuple[tuple[list[Tensor], list[Tensor]], ...]:
    """((slow, fast) of all float tensors, (slow, fast) of the others): parameters and buffers alike."""
    both = list(zip((*slow.parameters(), *slow.buffers()), (*fast.parameters(), *fast.buffers()), strict=True))
    floats = [pair for pair in both if pair[0].is_floating_point()]
    others = [pair for pair in both if not pair[0].is_floating_point()]
    return tuple(([mine for mine, _ in part], [theirs for _, theirs in part]) for part in (floats, others))
