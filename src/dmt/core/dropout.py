"""Monte Carlo dropout: forward passes with active dropout in a net that is otherwise in eval mode."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.modules.dropout import _DropoutNd  # the common base class of torch's dropout layers


def layers(net: nn.Module) -> list[_DropoutNd]:
    """Return the dropout layers with a probability above 0."""
    return [module for module in net.modules() if isinstance(module, _DropoutNd) and module.p > 0]


def default_generator(device: torch.device) -> torch.Generator:
    """Return the generator that dropout on a device draws from; ``cuda`` without an index is the current GPU."""
    if device.type != "cuda":
        return torch.default_generator
    return torch.cuda.default_generators[torch.cuda.current_device() if device.index is None else device.index]


@contextmanager
def active(net: nn.Module, seed: int, device: torch.device) -> Iterator[None]:
    """Within this context, dropout is active and seeded; afterwards, modes and the random state are restored."""
    generator = default_generator(device)
    found, state = layers(net), generator.get_state()
    modes = [layer.training for layer in found]
    generator.manual_seed(seed)
    for layer in found:
        layer.train()
    try:
        yield
    finally:
        generator.set_state(state)
        for layer, training in zip(found, modes, strict=True):
            layer.train(training)
