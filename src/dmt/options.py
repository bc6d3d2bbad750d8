"""Options of frozen dataclasses: a default, and the line of help that `dmt list options` shows."""

from dataclasses import field
from typing import Any

from dmt.errors import ConfigError


def option(default: Any, text: str) -> Any:
    """A dataclass field with its line of help."""
    return field(default=default, metadata={"help": text})


def require(key: str, value: object, good: bool, must: str) -> None:
    """Refuse a value that nothing could mean."""
    if not good:
        raise ConfigError(f"{key} must be {must}, not {value}")
