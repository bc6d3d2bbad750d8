"""Naming conventions of published parameter files, and the input normalization that they imply.

Files of every convention are converted to a `Published`: tensors by name, and the input normalization if the file
implies one. Names are then compared in a *plain* form, without the prefixes of modules wrapped around an encoder.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torch import Tensor

from dmt.types import Normalization

CAFFE_MEAN = (122.675, 116.669, 104.008)  # for images in 0…255, in the order red, green, blue
CAFFE = Normalization(tuple(value / 255 for value in CAFFE_MEAN), (1 / 255,) * 3)
LITE = Normalization((0.498,) * 3, (0.502,) * 3)
UNIT = Normalization((0.0,) * 3, (1.0,) * 3)

_WRAPPERS = ("module.", "features.", "backbone.", "encoder.", "body.", "model.", "net.", "Scale.")
_CAFFE_HEAD = "layer5.conv2d_list."
_LITE_OUTSIDE = {
    "_conv_stem": "conv_stem", "_bn0": "bn1", "_conv_head": "conv_head", "_bn1": "bn2", "_fc": "classifier",
}  # fmt: skip
_LITE_FIRST = {"_depthwise_conv": "conv_dw", "_bn1": "bn1", "_project_conv": "conv_pw", "_bn2": "bn2"}
_LITE_LATER = {
    "_expand_conv": "conv_pw", "_bn0": "bn1", "_depthwise_conv": "conv_dw", "_bn1": "bn2",
    "_project_conv": "conv_pwl", "_bn2": "bn3",
}  # fmt: skip


@dataclass(frozen=True)
class Published:
    """Tensors by their names in our nets, and the normalization they were trained with (None: the encoder's usual)."""

    tensors: dict[str, Tensor]
    normalization: Normalization | None = None


def plain(name: str) -> str:
    """Return a name without wrapper prefixes, and with dots for underscores, as timm also writes ``stem_0``."""
    name = name.replace("_", ".")
    while wrapper := next((wrapper for wrapper in _WRAPPERS if name.startswith(wrapper)), None):
        name = name.removeprefix(wrapper)
    return name


def recognize(tensors: Mapping[str, Tensor], own_names: Iterable[str]) -> Published:
    """Convert a file's tensors by the convention of their names; ``own_names`` are those of the net to fill."""
    if {"mean", "std"} <= tensors.keys() and any(name.startswith("body.") for name in tensors):
        return _ours(tensors)
    if any(_CAFFE_HEAD in name for name in tensors):
        return Published(_caffe(tensors), CAFFE)
    if any(name.endswith("_conv_stem.weight") and "_bn0.weight" in tensors for name in tensors):
        return Published(_lite(tensors, own_names), LITE)
    return Published(dict(tensors))


def _ours(tensors: Mapping[str, Tensor]) -> Published:
    """Convert a net of a run of this package, which contains its normalization."""
    mean, std = (tuple(tensors[key].flatten().tolist()) for key in ("mean", "std"))
    rest = {name: tensor for name, tensor in tensors.items() if name not in ("mean", "std")}
    return Published(rest, Normalization(mean, std))


def _caffe(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert a DeepLab-v2 from Caffe: its head is called layer5, and its first convolution takes BGR images."""
    renamed: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if plain(name) == "conv1.weight":
            tensor = tensor.flip(1)
        wrapper, found, branch = name.partition(_CAFFE_HEAD)
        renamed[f"head.branches.{branch}" if found else wrapper] = tensor
    return renamed


def _lite(tensors: Mapping[str, Tensor], own_names: Iterable[str]) -> dict[str, Tensor]:
    """Convert an EfficientNet-Lite with consecutively numbered blocks to timm's stages, as found in the net to fill."""
    found = (re.match(r"blocks\.(\d+)\.(\d+)\.", plain(name)) for name in own_names)
    stages = sorted({(int(match[1]), int(match[2])) for match in found if match})
    renamed: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if match := re.fullmatch(r"_blocks\.(\d+)\.(\w+)\.(\w+)", name):
            if int(match[1]) < len(stages):
                stage, block = stages[int(match[1])]
                layer = (_LITE_LATER if stage else _LITE_FIRST).get(match[2], match[2])
                renamed[f"blocks.{stage}.{block}.{layer}.{match[3]}"] = tensor
        else:
            layer, _, kind = name.partition(".")
            renamed[f"{_LITE_OUTSIDE.get(layer, layer)}.{kind}"] = tensor
    return renamed
