"""Parsing of option values, given as text by a user or as values of a TOML file."""

import math
import types
import typing
from typing import Any, Literal

from dmt.errors import ConfigError


def parse(key: str, value: Any, kind: Any) -> Any:
    """Convert a value to a type annotation, or raise `ConfigError` saying what was expected.

    Args:
        key: the option's name, for the error message.
        value: text as a user types it, a TOML value, or a number or array of NumPy.
        kind: a scalar type, ``Literal``, ``tuple``, or a union of these and None.
    """
    value, origin, args = plain(value), typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return _one_of(key, value, args)
    if origin is Literal:
        if value not in args:
            raise ConfigError(f"{key} must be one of {', '.join(args)}, not '{value}'")
        return value
    if origin is tuple:
        items = _items(value) if isinstance(value, str) else value
        if not listed(items):
            wanted = "names" if args[0] is str else "numbers, such as [0.5, 1]"
            raise ConfigError(f"{key} must be a list of {wanted}, not {value!r}")
        return tuple(parse(key, item, args[0]) for item in items)
    return _scalar(key, value, kind)


def _one_of(key: str, value: Any, kinds: tuple[Any, ...]) -> Any:
    """Convert a value to one type of a union: None, literal, tuple or scalar. Text with several items is a list."""
    if types.NoneType in kinds and (value is None or (isinstance(value, str) and value.lower() == "none")):
        return None
    *others, last = sorted((kind for kind in kinds if kind is not types.NoneType), key=_rank)
    for kind in others:
        if typing.get_origin(kind) is Literal and value in typing.get_args(kind):
            return value
        if typing.get_origin(kind) is tuple and (len(_items(value)) > 1 if isinstance(value, str) else listed(value)):
            return parse(key, value, kind)
    words = [str(word) for kind in others if typing.get_origin(kind) is Literal for word in typing.get_args(kind)]
    try:
        return parse(key, value, last)
    except ConfigError as error:
        if not words or typing.get_origin(last) is not None:
            raise
        also = ["none"] * (types.NoneType in kinds) + words
        raise ConfigError(f"{key} must be a number, {' or '.join(also)}, not '{value}'") from error


def _rank(kind: Any) -> int:
    """Return the sort key by which types are tried: literals, tuples, scalars. The last one gets what is left over."""
    return [Literal, tuple, None].index(typing.get_origin(kind))


def plain(value: Any) -> Any:
    """Return numbers and arrays of NumPy and torch as those of Python, also in lists; anything else as it is."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return type(value)(map(plain, value)) if type(value) in (list, tuple) else value


def listed(value: Any) -> bool:
    """Whether a value is a list or a tuple."""
    return isinstance(value, list | tuple)


def _items(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _scalar(key: str, value: Any, kind: Any) -> Any:
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    if kind is bool and isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    finite = not isinstance(value, float) or math.isfinite(value)
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)) and finite:
        return value
    if kind is str and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if kind in (int, float) and isinstance(value, str | int) and not isinstance(value, bool):
        try:
            number = kind(value.replace("_", "") if isinstance(value, str) else value)
            if math.isfinite(number):
                return number
        except (ValueError, OverflowError):
            pass
    raise ConfigError(f"{key} must be {words[kind]}, not '{value}'")
