"""A look at a batch in train mode that leaves BatchNorm's running statistics alone."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


@contextmanager
def statistics_untouched(net: nn.Module) -> Iterator[None]:
    """Within, train-mode BatchNorm normalizes by the batch but does not update its running mean and variance."""
    # one in eval mode changes nothing anyway, and would stop using what it has
    norms = [m for m in net.modules() if isinstance(m, _BatchNorm) and m.training and m.track_running_stats]
    for norm in norms:
        # in train mode a norm that tracks nothing uses the batch's statistics and touches no buffer
        norm.track_running_stats = False
    try:
        yield
    finally:
        for norm in norms:
            norm.track_running_stats = True
