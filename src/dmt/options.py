"""Options as fields of frozen dataclasses: defaults, help texts for `dmt list options`, and content for identities."""

import dataclasses
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from dmt.errors import ConfigError


def option(default: Any, text: str, neutral: bool = False) -> Any:
    """Return a dataclass field with a help text.

    Args:
        default: the field's default.
        text: the help text, one line.
        neutral: for options added later whose default trains as before. At its default, such an option is left out of
            identities, so that stages trained by older releases keep theirs.
    """
    return field(default=default, metadata={"help": text} | ({"neutral": True} if neutral else {}))


def neutral(default: Any) -> Any:
    """Return a neutral dataclass field that users cannot set, as in a stage, a schedule or an objective."""
    return field(default=default, metadata={"neutral": True})


def require(key: str, value: object, good: bool, must: str) -> None:
    """Raise a `ConfigError` saying what the option must be, unless its value is good."""
    if not good:
        raise ConfigError(f"{key} must be {must}, not {value}")


def described(kind: type[Any]) -> dict[str, tuple[str, Any]]:
    """Return (help text, default) of the options of a dataclass, by name."""
    options = (each for each in dataclasses.fields(kind) if "help" in each.metadata)
    return {each.name: (each.metadata["help"], each.default) for each in options}


def content(instance: Any) -> dict[str, Any]:
    """Return a dataclass as plain values for an identity: like ``asdict``, but without neutral fields at defaults."""
    told = [each for each in dataclasses.fields(instance) if not _left_out(each, getattr(instance, each.name))]
    return {each.name: _plain(getattr(instance, each.name)) for each in told}


def _left_out(each: dataclasses.Field[Any], value: Any) -> bool:
    return bool(each.metadata.get("neutral")) and value == each.default


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return content(value)
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
