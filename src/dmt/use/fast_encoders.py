"""Frozen encoders run by ONNX Runtime, which for many images on a CPU takes half of PyTorch's time."""

import torch
from torch import Tensor, nn

from dmt.models.build import Normalized
from dmt.models.frozen import Frozen
from dmt.models.mean_of_nets import MeanOfNets
from dmt.training import encoding
from dmt.training.encoding import Encode


class _OnFeatures(nn.Module):
    """The head of a net, on features that a given function computes."""

    def __init__(self, net: Normalized, encode: Encode) -> None:
        super().__init__()
        self.head, self._encode = net.body.head, encode

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self._encode(images))  # type: ignore[operator,no-any-return]


def for_many(net: nn.Module, shape: tuple[int, int, int], count: int) -> nn.Module:
    """Return the net in eval mode, with its frozen encoder run by ONNX Runtime if that pays off.

    It is used only if its features agree with PyTorch's to a thousandth.

    Args:
        net: a net, or the mean of several.
        shape: (C, H, W) of the images.
        count: number of images to come.
    """
    device = next(net.parameters()).device
    if device.type != "cpu" or count < encoding.WORTH_EXPORTING:
        return net
    if isinstance(net, MeanOfNets):
        return MeanOfNets({line: for_many(each, shape, count) for line, each in net.nets.items()}).eval()
    if isinstance(net, Normalized) and isinstance(net.body, Frozen) and net.class_filter is None:
        return _OnFeatures(net, encoding.encoder(net, torch.device("cpu"), shape, count)).eval()
    return net
