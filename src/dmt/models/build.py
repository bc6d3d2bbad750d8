"""Nets by name: ``wrn-28-2``, ``resnet8-16``, ``timm:resnet18``."""

import re
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from dmt.errors import ConfigError, unknown
from dmt.models import torchvision_pair
from dmt.models.small_resnet import SmallResNet
from dmt.models.wide_resnet import WideResNet
from dmt.types import Normalization

NETS: dict[str, str] = {
    "wrn-D-K": "Wide ResNet of depth D and width K, e.g. wrn-28-2 (the paper's), wrn-16-4",
    "resnet8-W": "a small ResNet, W wide, for tiny images on a CPU, e.g. resnet8-16",
    "timm:NAME": "any classifier of timm, e.g. timm:resnet18 (pip install 'dmt-vision[timm]')",
}


@dataclass(frozen=True)
class NetSpec:
    """What a net must fit: its images, its classes, and how its input is normalized."""

    name: str
    classes: int
    shape: tuple[int, int, int]  # (C, H, W)
    normalization: Normalization


class Normalized(nn.Module):
    """A net together with its input normalization, so that every net takes images in [0, 1]."""

    mean: Tensor
    std: Tensor

    def __init__(self, body: nn.Module, normalization: Normalization) -> None:
        super().__init__()
        self.body = body
        self.register_buffer("mean", torch.tensor(normalization.mean).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(normalization.std).view(1, -1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        return self.body((images - self.mean) / self.std)  # type: ignore[no-any-return]


def build(spec: NetSpec, seed: int) -> Normalized:
    """A fresh net whose parameters depend on the seed alone; the caller's random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return Normalized(_body(spec), spec.normalization)


def _body(spec: NetSpec) -> nn.Module:
    channels = spec.shape[0]
    if spec.name.startswith("timm:"):
        return _timm(spec.name.removeprefix("timm:"), spec)
    if match := re.fullmatch(r"wrn-(\d+)-(\d+)", spec.name):
        depth, width = map(int, match.groups())
        if depth < 10 or (depth - 4) % 6 or width < 1:
            raise ConfigError(f"net '{spec.name}': the depth must be 6n + 4 (10, 16, 22, 28, …), the width 1 or more")
        return WideResNet(depth, width, spec.classes, channels)
    if match := re.fullmatch(r"resnet8-(\d+)", spec.name):
        if int(match[1]) < 1:
            raise ConfigError(f"net '{spec.name}': the width must be 1 or more")
        return SmallResNet(int(match[1]), spec.classes, channels)
    raise unknown("net", spec.name, [*NETS, "wrn-28-2", "resnet8-16", "timm:resnet18"])


def _timm(name: str, spec: NetSpec) -> nn.Module:
    try:
        torchvision_pair.ensure()
        import timm
    except ModuleNotFoundError as error:
        raise ConfigError(f"net 'timm:{name}' needs timm: pip install 'dmt-vision[timm]'") from error
    if not timm.is_model(name):
        raise unknown("timm net", name, timm.list_models())
    channels, height, width = spec.shape
    options: dict[str, Any] = {"num_classes": spec.classes, "in_chans": channels}
    try:
        # nets with position embeddings must know the image size; convolutional ones refuse the option
        net: nn.Module = timm.create_model(name, img_size=(height, width), **options)
    except TypeError:
        net = timm.create_model(name, **options)
    return net
