"""BatchNorm's running statistics: left alone by a look in train mode, or taken anew from given images."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


@contextmanager
def statistics_untouched(net: nn.Module) -> Iterator[None]:
    """Within, train-mode BatchNorm normalizes by the batch but does not update its running mean and variance."""
    norms = _tracking(net)
    for norm in norms:
        # in train mode a norm that tracks nothing uses the batch's statistics and touches no buffer
        norm.track_running_stats = False
    try:
        yield
    finally:
        for norm in norms:
            norm.track_running_stats = True


@torch.no_grad()
def reestimate(net: nn.Module, batches: Iterable[Tensor]) -> None:
    """Set running means and variances to their averages over these batches, each normalized by itself.

    All else is in eval mode meanwhile, so that dropout changes nothing; BatchNorm that does not learn, as in a frozen
    encoder, stays as it is.
    """
    before = net.training
    norms = _tracking(net.train())
    net.eval()
    if norms:
        kept = [norm.momentum for norm in norms]
        for norm in norms:
            norm.train()
            norm.reset_running_stats()
            norm.momentum = None  # torch's name for a plain average
        for images in batches:
            net(images)
        for norm, momentum in zip(norms, kept, strict=True):
            norm.momentum = momentum
    net.train(before)


def _tracking(net: nn.Module) -> list[_BatchNorm]:
    """Those that a forward would change now; one in eval mode uses what it has and changes nothing."""
    return [m for m in net.modules() if isinstance(m, _BatchNorm) and m.training and m.track_running_stats]
