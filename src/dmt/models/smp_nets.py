"""Nets of segmentation-models-pytorch by name: ``unet/resnet34``, ``fpn/tu-convnext_tiny``."""

import inspect
from dataclasses import asdict
from types import ModuleType
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmt.errors import ConfigError, unknown
from dmt.models import alignment, torchvision_pair
from dmt.models.encoder_decoder import EncoderDecoder
from dmt.types import IMAGENET, PADDING


class Float32(nn.Sequential):
    """Layers that run in float32 even under autocast, so that confidences do not become equal by rounding."""

    def forward(self, features: Tensor) -> Tensor:
        with torch.autocast(features.device.type, enabled=False):
            return super().forward(features.float())  # type: ignore[no-any-return, no-untyped-call]


class SmpNet(nn.Module):
    """A net for images of any size: they are padded at the right and bottom to multiples of `PADDING`, logits cropped.

    Upsampling inside the net is replaced by aligned upsampling (`alignment.GrowBy`).
    """

    def __init__(self, net: Any) -> None:
        super().__init__()
        alignment.replace_upsampling(net)
        _align_pyramid(net)
        head = net.segmentation_head
        net.segmentation_head = Float32(*head) if isinstance(head, nn.Sequential) else Float32(head)
        self.net = net
        self.pretrained_cfg: dict[str, Any] = asdict(IMAGENET)

    def forward(self, images: Tensor) -> Tensor:
        """Map images (N, C, H, W) to logits (N, classes, H, W)."""
        height, width = images.shape[-2:]
        padded = F.pad(images, (0, -width % PADDING, 0, -height % PADDING))
        return self.net(padded)[..., :height, :width]  # type: ignore[no-any-return]


class DividedSmpNet(SmpNet, EncoderDecoder):
    """A net that is a sequence of encoder, decoder and head, as nearly all of the library's are."""

    only_decode: ClassVar[tuple[str, ...]] = ("net.decoder", "net.segmentation_head")

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        height, width = images.shape[-2:]
        return tuple(self.net.encoder(F.pad(images, (0, -width % PADDING, 0, -height % PADDING))))

    def decode(self, features: tuple[Tensor, ...], size: tuple[int, int]) -> Tensor:
        height, width = size
        return self.net.segmentation_head(self.net.decoder(list(features)))[..., :height, :width]  # type: ignore[no-any-return]


def _align_pyramid(net: nn.Module) -> None:
    """Align a feature pyramid: its blocks upsample in code, so switch that off and append a `GrowBy` instead."""
    from segmentation_models_pytorch.decoders.fpn.decoder import Conv3x3GNReLU

    for module in list(net.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, Conv3x3GNReLU) and child.upsample:
                child.upsample = False
                setattr(module, name, nn.Sequential(child, alignment.GrowBy(2)))


def build(name: str, classes: int, channels: int) -> SmpNet:
    """Build the net ARCH/ENCODER with random parameters."""
    smp = _package(name)
    architecture, _, encoder = name.partition("/")
    base = smp.base.SegmentationModel
    known = [label.lower() for label, kind in vars(smp).items() if inspect.isclass(kind) and issubclass(kind, base)]
    if architecture not in known:
        raise unknown("smp architecture", architecture, known)
    _check_encoder(smp, encoder)
    try:
        net = smp.create_model(architecture, encoder, encoder_weights=None, in_channels=channels, classes=classes)
    except (TypeError, ValueError, AssertionError, NotImplementedError, RuntimeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConfigError(f"net 'smp:{name}' does not exist: {reason}; try another encoder") from error
    divided = type(net).forward is base.forward
    return DividedSmpNet(net) if divided else SmpNet(net)


def _package(name: str) -> ModuleType:
    try:
        torchvision_pair.ensure()
        import segmentation_models_pytorch as smp
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"net 'smp:{name}' needs segmentation-models-pytorch: pip install 'dmt-vision[smp]'"
        ) from error
    return smp  # type: ignore[no-any-return]


def _check_encoder(smp: ModuleType, encoder: str) -> None:
    import timm

    if encoder.startswith("tu-"):  # any net of timm
        if not timm.is_model(encoder.removeprefix("tu-")):
            raise unknown("timm encoder", encoder, [f"tu-{known}" for known in timm.list_models()])
    elif encoder not in smp.encoders.get_encoder_names():
        raise unknown("smp encoder", encoder, smp.encoders.get_encoder_names())
