"""EMA copy of a net: the exponential moving average of its parameters and BatchNorm statistics."""

import copy
from collections.abc import Iterator

import torch
from torch import Tensor, nn


class SlowCopy:
    """EMA copy of a net: θ' ← θ' + s·(θ − θ') after every step, s = 1 − min(decay, (1 + t)/(10 + t)).

    In the paper's code the factors were exchanged, so that its "EMA net" was practically the raw net
    (docs/decisions, 2). Integer buffers, such as BatchNorm's step counters, are copied. Tensors that training does not
    change, such as those of a frozen encoder, are never updated, which saves time.

    Args:
        net: the net to follow, in the mode that it is trained in.
        decay: share of itself that the copy keeps in each step, in [0, 1), once t is large enough.
    """

    def __init__(self, net: nn.Module, decay: float) -> None:
        if not 0.0 <= decay < 1.0:
            raise ValueError(f"decay must be in [0, 1), not {decay}")
        self.net = copy.deepcopy(net).requires_grad_(False).eval()
        self.decay = decay
        self._pairs = _pairs(self.net, net)

    def stride(self, step: int) -> float:
        """Return s, the share of the difference to move by after this step, counted from 0."""
        return 1.0 - min(self.decay, (1.0 + step) / (10.0 + step))

    @torch.no_grad()
    def update(self, stride: Tensor) -> None:
        """Move the copy towards the net by the share ``stride``, a 0-d tensor on the net's device."""
        (slow, fast), (slow_counts, fast_counts) = self._pairs
        way = torch._foreach_sub(fast, slow)
        torch._foreach_mul_(way, stride)
        torch._foreach_add_(slow, way)
        for mine, theirs in zip(slow_counts, fast_counts, strict=True):
            mine.copy_(theirs)


def _pairs(slow: nn.Module, fast: nn.Module) -> tuple[tuple[list[Tensor], list[Tensor]], ...]:
    """Return (copy, net) tensor lists of the parameters and buffers that may change: first floats, then all others."""
    still = {id(each) for each in _still(fast)}
    every = zip((*slow.parameters(), *slow.buffers()), (*fast.parameters(), *fast.buffers()), strict=True)
    both = [pair for pair in every if id(pair[1]) not in still]
    floats = [pair for pair in both if pair[0].is_floating_point()]
    others = [pair for pair in both if not pair[0].is_floating_point()]
    return tuple(([mine for mine, _ in part], [theirs for _, theirs in part]) for part in (floats, others))


def _still(net: nn.Module) -> Iterator[Tensor]:
    """Yield what training does not change: parameters without gradient, and buffers of modules in eval mode."""
    for module in net.modules():
        yield from (each for each in module.parameters(recurse=False) if not each.requires_grad)
        yield from () if module.training else module.buffers(recurse=False)
