"""DeepLab-v2 on an encoder of timm: features at one eighth of the resolution, and parallel dilated convolutions.

A ResNet keeps its strides up to layer2; after that, dilation replaces them: the first block of layer3 has dilation 1
and the others 2, the first block of layer4 has 2 and the others 4. So 321 pixels give 41 features. At an output stride
of 16, only layer4 is dilated, and the head's branches cover the same number of pixels with half the dilation.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from dmt.errors import ConfigError, unknown
from dmt.models import alignment
from dmt.models.encoder_decoder import EncoderDecoder

STRIDES = (8, 16)
DILATIONS = (6, 12, 18, 24)
"""Dilations of the head's branches, at an output stride of 8."""


class DilatedSum(nn.Module):
    """Sum of parallel 3×3 convolutions from features to classes, one for each dilation."""

    def __init__(self, width: int, classes: int, dilations: tuple[int, ...]) -> None:
        super().__init__()
        self.branches = nn.ModuleList(
            nn.Conv2d(width, classes, 3, padding=dilation, dilation=dilation) for dilation in dilations
        )

    def forward(self, features: Tensor) -> Tensor:
        return torch.stack([branch(features) for branch in self.branches]).sum(0)


class DeepLab(EncoderDecoder):
    """An encoder, of whose feature maps the last one is used, a head, and bilinear upsampling.

    Head and upsampling run in float32 even under autocast: less precise logits would make many confidences equal, and
    pseudo labels are ranked by confidence.
    """

    only_decode: ClassVar[tuple[str, ...]] = ("head",)

    def __init__(self, encoder: nn.Module, width: int, classes: int, branches: int = 4, stride: int = 8) -> None:
        super().__init__()
        self.encoder, self.stride = encoder, stride
        self.head = DilatedSum(width, classes, tuple(8 * dilation // stride for dilation in DILATIONS[:branches]))
        self.pretrained_cfg: dict[str, Any] = getattr(encoder, "pretrained_cfg", {})

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        padded = alignment.padded(images, self.stride)  # sides of stride·k + 1, so feature i lies at pixel stride·i
        return (self.encoder(padded)[-1],)  # (N, width, k + 1, k + 1)

    def decode(self, features: tuple[Tensor, ...], size: tuple[int, int]) -> Tensor:
        (last,) = features
        with torch.autocast(last.device.type, enabled=False):
            logits = alignment.grow(self.head(last.float()), alignment.padded_size(size, self.stride))
            return alignment.crop(logits, size)


def build(name: str, classes: int, channels: int, branches: int, stride: int = 8) -> DeepLab:
    """Build a DeepLab with random parameters on the timm encoder of that name; timm must be installed."""
    import timm

    if stride not in STRIDES:
        raise ConfigError(f"an output stride must be {' or '.join(map(str, STRIDES))}, not {stride}")
    if not timm.is_model(name):
        raise unknown("timm encoder", name, timm.list_models())
    refusal = ConfigError(
        f"timm's '{name}' cannot give features at stride {stride}; choose an encoder that dilates, "
        "such as resnet50, resnet101, tf_efficientnet_lite0 or regnety_016"
    )
    try:
        encoder: Any = timm.create_model(
            name, features_only=True, out_indices=(-1,), output_stride=stride, in_chans=channels
        )
    except (TypeError, ValueError, AssertionError, NotImplementedError, RuntimeError) as error:
        raise refusal from error
    if encoder.feature_info.reduction()[-1] != stride:  # some encoders accept the option but ignore it
        raise refusal
    return DeepLab(encoder, encoder.feature_info.channels()[-1], classes, branches, stride)
