"""Configuration: frozen, typed, nested in groups, and overridden by flat keys (``gamma=5``)."""

import dataclasses
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dmt.data.folders.photo_options import PhotoMaskOptions, PhotoOptions
from dmt.data.images.options import DataOptions
from dmt.data.pixels.segment_options import SegmentOptions
from dmt.errors import ConfigError, unknown
from dmt.methods.recipe import Recipe
from dmt.options import option


@dataclass(frozen=True)
class Config:
    """Everything that decides a result, apart from the method and the seed."""

    data: DataOptions | SegmentOptions | PhotoOptions | PhotoMaskOptions
    recipe: Recipe
    net: str = option("resnet8-16", "the net, see `dmt list`")
    net_b: str | None = option(None, "pair: the net of line B, if it should differ")

    def net_of(self, line: str) -> str:
        """The net that a line trains."""
        return self.net_b if line == "B" and self.net_b is not None else self.net


def flat(config: Config) -> dict[str, Any]:
    """All keys with their values, groups dissolved."""
    return {key: getattr(group, key) for key, group in _owners(config).items()}


def helps(config: Config) -> dict[str, str]:
    """All keys with their line of help."""
    return {
        field.name: field.metadata["help"]
        for group in (config, config.data, config.recipe)
        for field in dataclasses.fields(group)
        if "help" in field.metadata
    }


def described(config: Config) -> dict[str, str]:
    """All keys a user may set, with their line of help and their value here."""
    values = flat(config)
    return {key: f"{text} [{shown(values[key])}]" for key, text in helps(config).items() if key != "dataset"}


def shown(value: Any) -> str:
    """A value as a user would type it."""
    if isinstance(value, tuple | list):
        return ",".join(map(shown, value))
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def override(config: Config, changes: Mapping[str, Any]) -> Config:
    """A configuration with some keys changed. Values may be text, as typed by a user, or TOML values."""
    owners = _owners(config)
    for key in changes:
        if key not in owners:
            raise unknown("option", key, owners)
    if changes.get("dataset", config.data.dataset) != config.data.dataset:
        raise ConfigError(f"the data set is {config.data.dataset} here; name another preset instead of setting dataset")
    groups: dict[str, Any] = {}
    for name, group in (("data", config.data), ("recipe", config.recipe)):
        mine = {key: value for key, value in changes.items() if owners[key] is group}
        hints = typing.get_type_hints(type(group))
        groups[name] = dataclasses.replace(group, **{key: parse(key, v, hints[key]) for key, v in mine.items()})
    net = parse("net", changes.get("net", config.net), str)
    net_b = parse("net_b", changes.get("net_b", config.net_b), str | None)
    if net_b is not None and groups["recipe"].shape != "pair":
        raise ConfigError("net_b is the second net of a pair; set shape=pair too")
    return Config(net=net, net_b=net_b, **groups)


def from_toml(path: Path) -> dict[str, Any]:
    """Flat keys from a TOML file."""
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error


def from_pairs(pairs: typing.Iterable[str]) -> dict[str, str]:
    """``["gamma=5"]`` to ``{"gamma": "5"}``."""
    result = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--set takes key=value, not '{pair}'; e.g. --set gamma=5")
        result[key.strip()] = value.strip()
    return result


def seeds(text: str) -> list[int]:
    """``1-3`` or ``1,4,7`` or both."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            found += range(int(first), int(last if dash else first) + 1)
        except ValueError:
            raise ConfigError(f"--seeds takes 1-3 or 1,4,7, not '{text}'") from None
    if not found:
        raise ConfigError(f"--seeds {text} names no seed")
    return found


def parse(key: str, value: Any, kind: Any) -> Any:
    """``value`` as ``kind``, or one line saying what was expected."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):  # always "X | None" here
        if value is None or (isinstance(value, str) and value.lower() == "none"):
            return None
        return parse(key, value, next(arg for arg in args if arg is not types.NoneType))
    if origin is Literal:
        if value not in args:
            raise ConfigError(f"{key} must be one of {', '.join(args)}, not '{value}'")
        return value
    if origin is tuple:
        items = value.replace(",", " ").split() if isinstance(value, str) else value
        if not isinstance(items, list | tuple):
            raise ConfigError(f"{key} must be a list of numbers, such as 0.5,1, not '{value}'")
        return tuple(parse(key, item, args[0]) for item in items)
    return _scalar(key, value, kind)


def _scalar(key: str, value: Any, kind: Any) -> Any:
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    if kind is bool and isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    if kind is str and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if kind in (int, float) and isinstance(value, str | int) and not isinstance(value, bool):
        try:
            number = kind(value.replace("_", "") if isinstance(value, str) else value)
            if number == number and abs(number) != float("inf"):
                return number
        except ValueError:
            pass
    raise ConfigError(f"{key} must be {words[kind]}, not '{value}'")


def _owners(config: Config) -> dict[str, Any]:
    """Which group holds which key. Keys are unique over the groups."""
    owners: dict[str, Any] = {"net": config, "net_b": config}
    for group in (config.data, config.recipe):
        owners |= {field.name: group for field in dataclasses.fields(group)}
    return owners
