"""Feature-pyramid net on an encoder of timm: features of four strides, merged from the coarsest to the finest.

While DeepLab keeps the encoder's stride low by dilation, this net leaves the encoder as published and recovers detail
from its earlier layers. So it is much cheaper, especially with depthwise convolutions (docs/decisions, 25).
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from dmt.errors import ConfigError, unknown
from dmt.models import alignment, onnx_encoder
from dmt.models.encoder_decoder import EncoderDecoder
from dmt.models.fcn import Layer

STRIDES = (4, 8, 16, 32)
WIDTH, WIDTH_FROZEN = 128, 64
"""Channels of the decoder; on a frozen encoder, a narrow one learns as much in less than half the time."""


class Decoder(nn.Module):
    """Merge features of four strides into one map at the finest stride, (N, width, h, w).

    Every level is projected to the same width and normalized, the upsampled map of the next coarser level is added, and
    a 3×3 convolution smooths the sum.
    """

    def __init__(self, channels: list[int], width: int) -> None:
        super().__init__()
        # pretrained features differ widely in scale between levels: without BatchNorm, some would dominate
        self.laterals = nn.ModuleList(
            nn.Sequential(nn.Conv2d(each, width, 1, bias=False), nn.BatchNorm2d(width)) for each in channels
        )
        self.merges = nn.ModuleList(Layer(width, width) for _ in channels)

    def forward(self, features: Sequence[Tensor], patches: bool) -> Tensor:
        """Merge features, given from the finest to the coarsest; ``patches`` as in `alignment`."""
        levels = [lateral(each) for lateral, each in zip(self.laterals, features, strict=True)]
        merges = list(self.merges)
        merged: Tensor = merges[-1](levels[-1])
        for level, merge in zip(levels[-2::-1], merges[-2::-1], strict=True):
            merged = merge(level + alignment.grow(merged, (level.shape[-2], level.shape[-1]), patches=patches))
        return merged


class FPN(EncoderDecoder):
    """An encoder, a decoder with skip connections, a head at a quarter of the resolution, and bilinear upsampling.

    Head and upsampling run in float32 even under autocast, as in `DeepLab`.

    Args:
        encoder: a timm net from images to a list of feature maps; those with `STRIDES` are used.
        classes: number of classes.
        patches: whether features lie in the centers of patches, as in `alignment`.
        frozen: whether the encoder keeps its initial parameters, so that only decoder and head are trained.
    """

    only_decode: ClassVar[tuple[str, ...]] = ("decoder", "head")

    def __init__(self, encoder: Any, classes: int, *, patches: bool = False, frozen: bool = False) -> None:
        super().__init__()
        self.encoder = encoder.requires_grad_(not frozen)
        self._levels, channels = _levels(encoder), encoder.feature_info.channels()
        width = WIDTH_FROZEN if frozen else WIDTH
        self.decoder = Decoder([channels[level] for level in self._levels], width)
        self.head = nn.Conv2d(width, classes, 1)
        self.patches = patches
        self.frozen = frozen
        self.pretrained_cfg: dict[str, Any] = getattr(encoder, "pretrained_cfg", {})
        self.train()

    def train(self, mode: bool = True) -> "FPN":
        """Set the mode, but keep a frozen encoder in eval mode."""
        super().train(mode)
        if self.frozen:
            self.encoder.eval()
        return self

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        padded = alignment.padded(images, STRIDES[-1], patches=self.patches)
        if self.frozen and onnx_encoder.suits(self.encoder, padded):
            return tuple(onnx_encoder.features(self.encoder, self._levels, padded))
        found = self.encoder(padded)
        return tuple(found[level] for level in self._levels)

    def decode(self, features: tuple[Tensor, ...], size: tuple[int, int]) -> Tensor:
        merged = self.decoder(features, self.patches)
        with torch.autocast(merged.device.type, enabled=False):
            padded = alignment.padded_size(size, STRIDES[-1], patches=self.patches)
            logits = alignment.grow(self.head(merged.float()), padded, patches=self.patches)
            return alignment.crop(logits, size)


def engine(net: nn.Module, device: torch.device) -> str | None:
    """Return the library that computes a net's frozen encoder on a CPU; None if it has none, or on other devices."""
    frozen = any(isinstance(each, FPN) and each.frozen for each in net.modules())
    return onnx_encoder.engine() if frozen and device.type == "cpu" else None


def build(name: str, classes: int, channels: int, *, frozen: bool) -> FPN:
    """Build a feature-pyramid net with random parameters on the timm encoder of that name; timm must be installed."""
    import timm

    if not timm.is_model(name):
        raise unknown("timm encoder", name, timm.list_models())
    refusal = ConfigError(
        f"timm's '{name}' cannot give features on exact grids of strides {', '.join(map(str, STRIDES))}; choose a "
        "convolutional encoder, such as resnet50, resnet101, tf_efficientnet_lite0 or convnext_tiny"
    )
    try:
        encoder: Any = timm.create_model(name, features_only=True, in_chans=channels)
    except (TypeError, ValueError, AssertionError, NotImplementedError, RuntimeError) as error:
        raise refusal from error
    if not set(STRIDES) <= set(encoder.feature_info.reduction()):
        raise refusal
    for patches in (False, True):
        if _lies(encoder, channels, patches):
            return FPN(encoder, classes, patches=patches, frozen=frozen)
    raise refusal


def _levels(encoder: Any) -> list[int]:
    """Return the positions of the encoder's last feature map at each of `STRIDES`."""
    reductions: list[int] = encoder.feature_info.reduction()
    last = {reduction: level for level, reduction in enumerate(reductions)}
    return [last[stride] for stride in STRIDES]


def _lies(encoder: Any, channels: int, patches: bool) -> bool:
    """Return whether feature i lies at pixel s·i on every level or, if ``patches``, in the center of patch i.

    If features lie at s·i + o, a side of s·(m − 1) + 2o + 1 pixels is the smallest one with m features. So the numbers
    of features at that size and at one pixel less show whether the offset is o.
    """
    side = 2 * STRIDES[-1] + (not patches)
    expected = [side // stride + (not patches) for stride in STRIDES]
    return _sides(encoder, channels, side) == expected and _sides(encoder, channels, side - 1) == [
        each - 1 for each in expected
    ]


@torch.no_grad()
def _sides(encoder: Any, channels: int, side: int) -> list[int]:
    """Return the side of each level's feature map for a square image; empty if the encoder rejects that size."""
    encoder.eval()
    try:
        features = encoder(torch.zeros(1, channels, side, side))
    except (ValueError, AssertionError, RuntimeError):
        return []
    return [features[level].shape[-1] for level in _levels(encoder)]
