"""Options of frozen dataclasses: a default, the line of help that `dmt list options` shows, what an identity holds."""

import dataclasses
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from dmt.errors import ConfigError


def option(default: Any, text: str, neutral: bool = False) -> Any:
    """A dataclass field with its line of help.

    Args:
        neutral: for an option that was added later, with a default that trains as before: while it is at its default it
            is no part of an identity, so that what older releases trained is still the same.
    """
    return field(default=default, metadata={"help": text} | ({"neutral": True} if neutral else {}))


def neutral(default: Any) -> Any:
    """The same for a field that no user sets: of a stage, a schedule, an objective."""
    return field(default=default, metadata={"neutral": True})


def require(key: str, value: object, good: bool, must: str) -> None:
    """Refuse a value that nothing could mean."""
    if not good:
        raise ConfigError(f"{key} must be {must}, not {value}")


def described(kind: type[Any]) -> dict[str, tuple[str, Any]]:
    """The options of a dataclass, with their help and their default."""
    options = (each for each in dataclasses.fields(kind) if "help" in each.metadata)
    return {each.name: (each.metadata["help"], each.default) for each in options}


def content(instance: Any) -> dict[str, Any]:
    """A dataclass as plain values for an identity: as ``asdict``, but without neutral fields at their defaults."""
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
