"""Dropout at work in a net that is otherwise in eval mode: one pass of many that differ."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.modules.dropout import _DropoutNd  # what all kinds of dropout layers have in common


def layers(net: nn.Module) -> list[_DropoutNd]:
    """Those that drop something in training."""
    return [module for module in net.modules() if isinstance(module, _DropoutNd) and module.p > 0]


@contextmanager
def active(net: nn.Module, seed: int, device: torch.device) -> Iterator[None]:
    """Within, the net's dropout draws by this seed, whatever was drawn before; afterwards all is as it was."""
    on_cuda = device.type == "cuda"
    generator = torch.cuda.default_generators[device.index or 0] if on_cuda else torch.default_generator
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
