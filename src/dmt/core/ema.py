"""A slow copy of a net: the exponential moving average of its parameters and BatchNorm statistics."""

import copy
from collections.abc import Iterator

import torch
from torch import Tensor, nn


class SlowCopy:
    """A copy that follows its net: θ' ← θ' + s·(θ − θ') after every step, s = 1 − min(decay, (1 + t)/(10 + t)).

    The slow net keeps ``decay`` of itself. (The paper's code had the factors swapped, so that its "EMA net" was the
    raw net: see docs/decisions.) Integer buffers, BatchNorm's step counters, are copied. What stays as it is in the
    net, as a frozen encoder does, is left alone in the copy: an encoder that nobody touches need not be looked at.

    Args:
        net: in the mode that it is trained in.
    """

    def __init__(self, net: nn.Module, decay: float) -> None:
        if not 0.0 <= decay < 1.0:
            raise ValueError(f"decay must be in [0, 1), not {decay}")
        self.net = copy.deepcopy(net).requires_grad_(False).eval()
        self.decay = decay
        self._pairs = _pairs(self.net, net)

    def stride(self, step: int) -> float:
        """s, the share of the way to go after ``step``, which counts from 0."""
        return 1.0 - min(self.decay, (1.0 + step) / (10.0 + step))

    @torch.no_grad()
    def update(self, stride: Tensor) -> None:
        """Move towards the net by ``stride``, a 0-d tensor on its device."""
        (slow, fast), (slow_counts, fast_counts) = self._pairs
        way = torch._foreach_sub(fast, slow)
        torch._foreach_mul_(way, stride)
        torch._foreach_add_(slow, way)
        for mine, theirs in zip(slow_counts, fast_counts, strict=True):
            mine.copy_(theirs)


def _pairs(slow: nn.Module, fast: nn.Module) -> tuple[tuple[list[Tensor], list[Tensor]], ...]:
    """((slow, fast) of all float tensors that may change, (slow, fast) of the others): parameters and buffers alike."""
    still = {id(each) for each in _still(fast)}
    every = zip((*slow.parameters(), *slow.buffers()), (*fast.parameters(), *fast.buffers()), strict=True)
    both = [pair for pair in every if id(pair[1]) not in still]
    floats = [pair for pair in both if pair[0].is_floating_point()]
    others = [pair for pair in both if not pair[0].is_floating_point()]
    return tuple(([mine for mine, _ in part], [theirs for _, theirs in part]) for part in (floats, others))


def _still(net: nn.Module) -> Iterator[Tensor]:
    """What training does not change: parameters that do not learn, and statistics of modules outside of training."""
    for module in net.modules():
        yield from (each for each in module.parameters(recurse=False) if not each.requires_grad)
        yield from () if module.training else module.buffers(recurse=False)
