"""What published parameter files call their tensors, and what input their nets were trained on.

Every convention ends as one `Published`: tensors by name, and the input normalization if the file implies one.
Names are then compared in a *plain* form, without the wrappers that people put around an encoder.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torch import Tensor

from dmt.types import Normalization

CAFFE_MEAN = (122.675, 116.669, 104.008)  # of images in 0…255, as red, green, blue
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
    """Tensors by the name they have in our nets, and the input their net was trained on (None: the usual one)."""

    tensors: dict[str, Tensor]
    normalization: Normalization | None = None


def plain(name: str) -> str:
    """A tensor's name without wrappers, and with dots for underscores: timm writes ``stem.0`` as ``stem_0`` too."""
    name = name.replace("_", ".")
    while wrapper := next((wrapper for wrapper in _WRAPPERS if name.startswith(wrapper)), None):
        name = name.removeprefix(wrapper)
    return name


def recognize(tensors: Mapping[str, Tensor], own_names: Iterable[str]) -> Published:
    """Read a file's convention off its names. `own_names` are those of the net to be filled."""
    if {"mean", "std"} <= tensors.keys() and any(name.startswith("body.") for name in tensors):
        return _ours(tensors)
    if any(_CAFFE_HEAD in name for name in tensors):
        return Published(_caffe(tensors), CAFFE)
    if any(name.endswith("_conv_stem.weight") and "_bn0.weight" in tensors for name in tensors):
        return Published(_lite(tensors, own_names), LITE)
    return Published(dict(tensors))


def _ours(tensors: Mapping[str, Tensor]) -> Published:
    """A net of a run of ours, which holds its normalization."""
    mean, std = (tuple(tensors[key].flatten().tolist()) for key in ("mean", "std"))
    rest = {name: tensor for name, tensor in tensors.items() if name not in ("mean", "std")}
    return Published(rest, Normalization(mean, std))


def _caffe(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """DeepLab-v2 as converted from Caffe: its head is layer5, and its first convolution takes blue, green, red."""
    renamed: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if plain(name) == "conv1.weight":
            tensor = tensor.flip(1)
        wrapper, found, branch = name.partition(_CAFFE_HEAD)
        renamed[f"head.branches.{branch}" if found else wrapper] = tensor
    return renamed


def _lite(tensors: Mapping[str, Tensor], own_names: Iterable[str]) -> dict[str, Tensor]:
    """EfficientNet-Lite with blocks in one row, where timm has stages; the net to be filled says which are where."""
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
