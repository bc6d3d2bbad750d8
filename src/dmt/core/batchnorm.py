"""BatchNorm's running statistics: keep them unchanged during a train-mode forward, or re-estimate them from images."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


@contextmanager
def statistics_untouched(net: nn.Module) -> Iterator[None]:
    """Within this context, train-mode BatchNorm uses batch statistics without updating its running statistics."""
    norms = _tracking(net)
    for norm in norms:
        # in train mode, a layer that does not track uses the batch's statistics and changes no buffer
        norm.track_running_stats = False
    try:
        yield
    finally:
        for norm in norms:
            norm.track_running_stats = True


@torch.no_grad()
def reestimate(net: nn.Module, batches: Iterable[Tensor]) -> None:
    """Set running means and variances to their averages over these batches, each normalized by its own statistics.

    Only the BatchNorm layers run in train mode meanwhile, so dropout is off. Layers that a forward in train mode would
    not update, such as those of a frozen encoder, keep their statistics.
    """
    before = net.training
    norms = _tracking(net.train())
    net.eval()
    if norms:
        kept = [norm.momentum for norm in norms]
        for norm in norms:
            norm.train()
            norm.reset_running_stats()
            norm.momentum = None  # makes torch keep a cumulative average
        for images in batches:
            net(images)
        for norm, momentum in zip(norms, kept, strict=True):
            norm.momentum = momentum
    net.train(before)


def _tracking(net: nn.Module) -> list[_BatchNorm]:
    """Return the BatchNorm layers that a forward would update now: those in train mode that track statistics."""
    return [m for m in net.modules() if isinstance(m, _BatchNorm) and m.training and m.track_running_stats]
