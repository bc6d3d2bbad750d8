"""Tiny fully convolutional segmentation net for small images on a CPU."""

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmt.models import alignment
from dmt.models.encoder_decoder import EncoderDecoder

STRIDE = 4


class Layer(nn.Sequential):
    """3×3 convolution, BatchNorm, ReLU."""

    def __init__(self, width_in: int, width: int, stride: int = 1, dilation: int = 1) -> None:
        super().__init__(
            nn.Conv2d(width_in, width, 3, stride, padding=dilation, dilation=dilation, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
        )


class SmallFCN(EncoderDecoder):
    """Downsampling to a quarter, residual layers of growing dilation, and upsampling with two skip connections.

    Widths are w, 2w, 4w at full, half and quarter resolution. The middle layers have a receptive field of 69 pixels,
    more than a small object; logits come from features at full resolution, so that thin strokes keep their edges.
    Images may have any size.
    """

    only_decode: ClassVar[tuple[str, ...]] = ("up1", "merge", "up2", "head")

    def __init__(self, width: int, classes: int, channels: int = 3) -> None:
        super().__init__()
        self.stem = Layer(channels, width)
        self.down1 = nn.Sequential(Layer(width, 2 * width, stride=2), Layer(2 * width, 2 * width))
        self.down2 = Layer(2 * width, 4 * width, stride=2)
        self.middle = nn.ModuleList(Layer(4 * width, 4 * width, dilation=dilation) for dilation in (1, 2, 4))
        self.up1 = nn.Conv2d(4 * width, 2 * width, 1)
        self.merge = Layer(2 * width, 2 * width)
        self.up2 = nn.Conv2d(2 * width, width, 1)
        self.head = nn.Conv2d(width, classes, 1)

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        full = self.stem(alignment.padded(images, STRIDE))  # (N, w, 4k + 1, 4k + 1)
        half = self.down1(full)  # (N, 2w, 2k + 1, 2k + 1)
        quarter = self.down2(half)  # (N, 4w, k + 1, k + 1)
        for layer in self.middle:
            quarter = quarter + layer(quarter)
        return full, half, quarter

    def decode(self, features: tuple[Tensor, ...], size: tuple[int, int]) -> Tensor:
        full, half, quarter = features
        merged = self.merge(half + _grow(self.up1(quarter), half))
        last = F.relu(full + _grow(self.up2(merged), full))
        with torch.autocast(last.device.type, enabled=False):  # less precise logits would make confidences equal
            return self.head(alignment.crop(last, size).float())  # type: ignore[no-any-return]


def _grow(features: Tensor, like: Tensor) -> Tensor:
    return alignment.grow(features, (like.shape[-2], like.shape[-1]))
