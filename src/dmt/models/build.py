"""Build nets by name: ``wrn-28-2`` or ``timm:resnet18`` for images, ``deeplab2:resnet101`` or ``fcn-16`` for pixels."""

import math
import re
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from dmt.errors import ConfigError, unknown
from dmt.models import cnn13, deeplab, embedding, fpn, names, registered, smp_nets, torchvision_pair
from dmt.models.class_filter import ClassFilter
from dmt.models.encoder_decoder import EncoderDecoder
from dmt.models.fcn import SmallFCN
from dmt.models.frozen import Frozen, Tuned
from dmt.models.perceptron import Perceptron
from dmt.models.small_resnet import SmallResNet
from dmt.models.wide_resnet import WideResNet
from dmt.options import neutral
from dmt.types import FeatureMap, Normalization

IMAGE_NETS: dict[str, str] = {
    "wrn-D-K": "Wide ResNet of depth D and width K, e.g. wrn-28-2 (the paper's), wrn-16-4",
    "cnn13": "13 layers with weight normalization, used by many older papers, for images of 12 pixels or more",
    "resnet8-W": "a small ResNet, W wide, for tiny images on a CPU, e.g. resnet8-16",
    "mlp-W": "a perceptron with two hidden layers, W wide, for feature vectors and tiny images, e.g. mlp-64",
    "timm:NAME": "any timm classifier, e.g. timm:resnet18",
    "frozen:NAME": "the same, with only the last layer trained: for photos; starts from pretrained weights",
    "tuned:NAME": "the same, fine-tuned as a whole except for BatchNorm statistics: for photos on a GPU",
}
PIXEL_NETS: dict[str, str] = {
    "deeplab2:ENCODER": "DeepLab-v2 on a timm encoder, e.g. deeplab2:resnet101",
    "deeplab2x2:ENCODER": "the same with two of the four branches, as in the paper's code",
    "fpn:ENCODER": "a feature pyramid on a timm encoder, e.g. fpn:resnet50: faster; skips instead of dilation",
    "frozen-fpn:ENCODER": "the same, with only the decoder trained: for CPUs; starts from pretrained weights",
    "fcn-W": "a tiny segmentation net, W wide, for CPUs, e.g. fcn-16",
    "smp:ARCH/ENCODER": "any segmentation-models-pytorch net, e.g. smp:unet/resnet34 (pip install 'dmt-vision[smp]')",
}
DIVIDED = ("fcn-W", "deeplab2:ENCODER", "fpn:ENCODER", "smp:ARCH/ENCODER")
"""Names of nets that consist of an encoder and a decoder, for error messages."""

NETS: dict[str, str] = IMAGE_NETS | PIXEL_NETS
_EXAMPLES = {
    False: ["wrn-28-2", "resnet8-16", "timm:resnet18"],
    True: ["deeplab2:resnet101", "fcn-16", "smp:unet/resnet34"],
}


@dataclass(frozen=True)
class NetSpec:
    """Name of a net, and what it must fit: images, classes, input normalization, and whether sites are pixels."""

    name: str
    classes: int
    shape: tuple[int, int, int]  # (C, H, W)
    normalization: Normalization
    pixels: bool = False  # logits (N, C, H, W), not (N, C)
    offset: int = neutral(0)  # first column of its encoder among stored features of several frozen encoders


class Normalized(nn.Module):
    """A net with its input normalization, so that every net takes images in [0, 1].

    Attributes:
        body: the net itself, for normalized images.
        class_filter: module that switches classes off outside of training; None for most nets. It is created when
            the state of a net with a filter is loaded, so code that builds nets by name need not know about it.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, body: nn.Module, normalization: Normalization) -> None:
        super().__init__()
        self.body = body
        self.class_filter: ClassFilter | None = None
        self.register_buffer("mean", torch.tensor(normalization.mean).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(normalization.std).view(1, -1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        normal = self._normal(images)
        logits: Tensor = self.body(normal)
        return logits if self.class_filter is None or self.training else self.class_filter.switched(logits, normal)

    def presence(self, images: Tensor) -> Tensor:
        """Return multi-label logits (N, classes), whether each class occurs in the image, from the class filter."""
        assert self.class_filter is not None
        return self.class_filter(self._normal(images))  # type: ignore[no-any-return]

    def add_class_filter(self, width: int, classes: int, threshold: float = 0.0) -> None:
        """Add a new class filter, whose encoder starts as a copy of the net's current encoder."""
        assert isinstance(self.body, EncoderDecoder)
        self.class_filter = ClassFilter(self.body.encoder_alone(), width, classes, threshold).to(self.mean.device)
        self.class_filter.train(self.training)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *others: Any) -> None:
        head = state_dict.get(f"{prefix}class_filter.head.weight")  # (classes, width)
        if head is not None and self.class_filter is None and isinstance(self.body, EncoderDecoder):
            self.add_class_filter(head.shape[1], head.shape[0])
        super()._load_from_state_dict(state_dict, prefix, *others)

    def embed(self, images: Tensor) -> Tensor:
        """Return the input of the last layer, (N, F)."""
        return embedding.embed(self.body, self._normal(images))

    def _normal(self, images: Tensor) -> Tensor:
        if images.dim() < 4:  # stored features of a frozen encoder
            return images
        return (images - self.mean) / self.std

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        """Return the feature maps for the decoder, for a net that is an `EncoderDecoder`."""
        assert isinstance(self.body, EncoderDecoder)
        return self.body.features((images - self.mean) / self.std)

    def decode(self, features: tuple[Tensor, ...], size: tuple[int, int]) -> Tensor:
        """Decode the features of images of ``size`` (H, W) to logits (N, classes, H, W)."""
        assert isinstance(self.body, EncoderDecoder)
        return self.body.decode(features, size)


def build(spec: NetSpec, seed: int) -> Normalized:
    """Build a fresh net, whose parameters depend on the seed alone; torch's random state does not change."""
    if spec.name not in registered.OWN:
        _check_name(spec)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        if spec.name in registered.OWN:
            return Normalized(registered.build(spec.name, spec.classes, spec.shape[0]), spec.normalization)
        return _pixel_net(spec) if spec.pixels else Normalized(_image_body(spec), spec.normalization)


def forward_share(net: str) -> float:
    """Return the cost of a forward as a share of forward and backward, for time forecasts.

    A backward costs twice as much as a forward. Frozen encoders have no backward, and the decoder on one is light.
    """
    return {"frozen": 1.0, "frozen-fpn": 3 / 4}.get(names.kind(net) or "", 1 / 3)


@torch.no_grad()
def feature_maps(net: nn.Module, spec: NetSpec) -> tuple[FeatureMap, ...]:
    """Return the width and stride of each feature map for a net's decoder, from the finest to the coarsest.

    Raises:
        ConfigError: if the net cannot be split into encoder and decoder.
    """
    if not isinstance(net, Normalized) or not isinstance(net.body, EncoderDecoder):
        raise ConfigError(
            f"net '{spec.name}' cannot be asked for features without its decoder, as this method does; "
            f"take {', '.join(DIVIDED)}"
        )
    side, before = 128, net.training
    found = net.eval().features(torch.zeros(1, spec.shape[0], side, side, device=net.mean.device))
    net.train(before)
    # a map has as many features along a side as there are patches, or one more: hence the rounding
    return tuple(FeatureMap(each.shape[1], 2 ** round(math.log2(side / each.shape[-1]))) for each in found)


def usual_normalization(body: nn.Module) -> Normalization | None:
    """Return the input normalization of a net's published parameters, or None for nets without any."""
    config: dict[str, Any] = getattr(body, "pretrained_cfg", {})
    if not {"mean", "std"} <= config.keys():
        return None
    return Normalization(tuple(config["mean"]), tuple(config["std"]))


def for_channels(normalization: Normalization, channels: int) -> Normalization:
    """Adapt a normalization to another number of channels: each channel gets the mean over the original ones."""
    if len(normalization.mean) == channels:
        return normalization
    mean, std = (sum(values) / len(values) for values in (normalization.mean, normalization.std))
    return Normalization((mean,) * channels, (std,) * channels)


def require_timm(net: str) -> None:
    """Make ``import timm`` work, or raise a ConfigError that says how to install it."""
    try:
        torchvision_pair.ensure()
        import timm  # noqa: F401
    except ModuleNotFoundError as error:
        raise ConfigError(f"net '{net}' needs timm, which is not installed here: pip install timm") from error


def size_hint(name: str) -> str:
    """Return the end of an error message, with the size that a timm net was published for; empty if unknown."""
    import timm

    size = timm.get_pretrained_cfg_value(name, "input_size") if timm.is_model(name) else None
    return f"; its published size is {size[-1]} (--set size={size[-1]})" if size else ""


def timm_net(name: str, shape: tuple[int, int, int], **options: Any) -> nn.Module:
    """Create a timm net for images of shape (C, H, W); ``options`` are passed to ``timm.create_model``."""
    import timm

    if not timm.is_model(name):
        raise unknown("timm net", name, timm.list_models())
    channels, height, width = shape
    net: nn.Module
    try:
        # nets with position embeddings need the image size; convolutional ones reject the option
        net = timm.create_model(name, img_size=(height, width), in_chans=channels, **options)
    except TypeError:
        net = timm.create_model(name, in_chans=channels, **options)
    except (RuntimeError, AssertionError, ValueError) as error:
        if options.get("pretrained"):
            raise  # the download may have failed
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ConfigError(
            f"timm's '{name}' cannot be built for images of {height} × {width}: {reason}{size_hint(name)}"
        ) from error
    _require_patches(name, net, (height, width))
    return net


def _require_patches(name: str, net: nn.Module, size: tuple[int, int]) -> None:
    """Reject image sizes that are no multiple of the patch size: timm would silently ignore the rest of the image."""
    from timm.layers.patch_embed import PatchEmbed

    embed: Any = getattr(net, "patch_embed", None)
    if not isinstance(embed, PatchEmbed) or embed.dynamic_img_pad:
        return
    if any(side % patch for side, patch in zip(size, embed.patch_size, strict=True)):
        patch = math.lcm(*embed.patch_size)
        below, above = (patch * (max(1, min(size) // patch) + more) for more in (0, 1))
        raise ConfigError(
            f"timm's '{name}' cuts images into patches of {patch} pixels, and {min(size)} is no multiple of that; "
            f"take another net or, for your images, --set size={below} or size={above}"
        )


def _check_name(spec: NetSpec) -> None:
    """Require a known name, of a net for the kind of sites that the task labels."""
    kind, nets = names.kind(spec.name), PIXEL_NETS if spec.pixels else IMAGE_NETS
    if kind in (names.IMAGE_KINDS if spec.pixels else names.PIXEL_KINDS):
        needs, labels = ("pixels", "images") if spec.pixels else ("images", "pixels")
        raise ConfigError(f"net '{spec.name}' labels {labels}, this task labels {needs}; use {', '.join(nets)}")
    if kind is None:
        raise unknown("net", spec.name, [*nets, *_EXAMPLES[spec.pixels]], "dmt list nets")


def _pixel_net(spec: NetSpec) -> Normalized:
    kind, name, channels = names.kind(spec.name), names.inner(spec.name), spec.shape[0]
    body: nn.Module
    if kind == "smp":
        body = smp_nets.build(name, spec.classes, channels)
    elif kind in ("deeplab2", "deeplab2x2"):
        require_timm(spec.name)
        branches, stride = 2 if kind == "deeplab2x2" else 4, names.output_stride(spec.name)
        body = deeplab.build(name, spec.classes, channels, branches, stride)
    elif kind in ("fpn", "frozen-fpn"):
        require_timm(spec.name)
        body = fpn.build(name, spec.classes, channels, frozen=kind == "frozen-fpn")
    else:
        body = SmallFCN(_width(spec.name), spec.classes, channels)
    return Normalized(body, for_channels(usual_normalization(body) or spec.normalization, channels))


def _image_body(spec: NetSpec) -> nn.Module:
    kind, name, channels = names.kind(spec.name), names.inner(spec.name), spec.shape[0]
    if kind == "timm":
        require_timm(spec.name)
        return timm_net(name, spec.shape, num_classes=spec.classes)
    if kind in ("frozen", "tuned"):
        require_timm(spec.name)
        encoder = timm_net(name, spec.shape, num_classes=0)
        width: Any = getattr(encoder, "head_hidden_size", encoder.num_features)
        body = Frozen if kind == "frozen" else Tuned
        return body(encoder, width, spec.classes, spec.offset)
    if match := re.fullmatch(r"wrn-(\d+)-(\d+)", spec.name):
        depth, width = map(int, match.groups())
        if depth < 10 or (depth - 4) % 6 or width < 1:
            raise ConfigError(f"net '{spec.name}': the depth must be 6n + 4 (10, 16, 22, 28, …), the width 1 or more")
        return WideResNet(depth, width, spec.classes, channels)
    if kind == "cnn13":
        if min(spec.shape[1:]) < cnn13.SMALLEST:
            raise ConfigError(f"net 'cnn13' needs images of {cnn13.SMALLEST} pixels or more, not {min(spec.shape[1:])}")
        return cnn13.CNN13(spec.classes, channels)
    if kind == "mlp":
        return Perceptron(_width(spec.name), spec.classes, math.prod(spec.shape))
    return SmallResNet(_width(spec.name), spec.classes, channels)


def _width(name: str) -> int:
    """Return the width W in resnet8-W, mlp-W or fcn-W."""
    width = int(name.rpartition("-")[2])
    if width < 1:
        raise ConfigError(f"net '{name}': the width must be 1 or more")
    return width
