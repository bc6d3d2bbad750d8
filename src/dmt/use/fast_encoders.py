"""Nets with frozen encoders, for many images on a CPU: their encoders by ONNX Runtime, in half of torch's time."""

import torch
from torch import Tensor, nn

from dmt.models.build import Normalized
from dmt.models.frozen import Frozen
from dmt.models.mean_of_nets import MeanOfNets
from dmt.training import encoding
from dmt.training.encoding import Encode


class _OnFeatures(nn.Module):
    """The head of a net on features that come another way."""

    def __init__(self, net: Normalized, encode: Encode) -> None:
        super().__init__()
        self.head, self._encode = net.body.head, encode

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self._encode(images))  # type: ignore[operator,no-any-return]


def for_many(net: nn.Module, shape: tuple[int, int, int], count: int) -> nn.Module:
    """The same net in eval mode, faster if it is worth it for so many images of a shape.

    Its features agree to a thousandth, which is checked before one is used; else it stays as it is.
    """
    device = next(net.parameters()).device
    if device.type != "cpu" or count < encoding.WORTH_EXPORTING:
        return net
    if isinstance(net, MeanOfNets):
        return MeanOfNets({line: for_many(each, shape, count) for line, each in net.nets.items()}).eval()
    if isinstance(net, Normalized) and isinstance(net.body, Frozen) and net.class_filter is None:
        return _OnFeatures(net, encoding.encoder(net, torch.device("cpu"), shape, count)).eval()
    return net
