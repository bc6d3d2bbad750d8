"""Checks of what JSON files hold, put together from kinds of values; `dmt.schemas` says what each file must hold."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

LARGEST = 1e300
"""No number that we write comes near it; sums of such numbers stay finite."""

LONGEST = 1 << 62
"""The same of whole numbers, which must fit into 64 bits."""

Check = Callable[[Any, str], None]
"""Raises `Mismatch` unless a value is as it must be; the text says where in its file it stands."""


class Mismatch(ValueError):
    """A value is not as it must be. The text says which, and what it should be."""


# --- kinds of values ---


def anything(value: Any, where: str) -> None:
    """Nobody relies on what it is."""


def flag(value: Any, where: str) -> None:
    _require(isinstance(value, bool), where, "true or false")


def text(value: Any, where: str) -> None:
    _require(isinstance(value, str), where, "text")


def whole(value: Any, where: str) -> None:
    """Of any length: seeds may be long."""
    _require(_is_whole(value), where, "a whole number")


def count(value: Any, where: str) -> None:
    _require(_is_whole(value) and 0 <= value < LONGEST, where, "a whole number of 0 or more")


def positive(value: Any, where: str) -> None:
    _require(_is_whole(value) and 0 < value < LONGEST, where, "a whole number above 0")


def number(value: Any, where: str) -> None:
    """Finite: JSON as Python reads it has NaN, Infinity, and whole numbers of any length."""
    good = isinstance(value, float) or _is_whole(value)
    _require(good and -LARGEST < value < LARGEST, where, "a number")


def name(value: Any, where: str) -> None:
    """Of a file or folder in the place where it is looked for: no path, which could lead elsewhere."""
    good = isinstance(value, str) and value == Path(value).name and value not in ("", ".", "..") and "\0" not in value
    _require(good, where, "the name of a file, not a path")


def named(value: Any, where: str) -> None:
    """Keys that are names of files."""
    for key in value:
        name(key, f"{where}.{key}")


def maybe(check: Check) -> Check:
    """Or null."""

    def checked(value: Any, where: str) -> None:
        if value is not None:
            check(value, where)

    return checked


def either(*checks: Check) -> Check:
    """What one of them takes."""

    def checked(value: Any, where: str) -> None:
        for each in checks[:-1]:
            try:
                return each(value, where)
            except Mismatch:
                continue
        return checks[-1](value, where)

    return checked


def listed(check: Check, length: int | None = None) -> Check:
    """A list of any length, or of one length."""

    def checked(value: Any, where: str) -> None:
        _require(isinstance(value, list), where, "a list")
        _require(length in (None, len(value)), where, f"a list of {length}")
        for position, each in enumerate(value):
            check(each, f"{where}[{position}]")

    return checked


def by_name(check: Check) -> Check:
    """Values by keys that are not known before."""

    def checked(value: Any, where: str) -> None:
        _require(isinstance(value, dict), where, "an object")
        for key, each in value.items():
            check(each, f"{where}.{key}")

    return checked


def record(fields: Mapping[str, Check], *, also: Check | None = None, closed: bool = False) -> Check:
    """Known keys; one that ends in a question mark may be missing.

    Args:
        also: what all values must pass besides.
        closed: whether other keys are refused.
    """
    known = {key.removesuffix("?") for key in fields}

    def checked(value: Any, where: str) -> None:
        _require(isinstance(value, dict), where, "an object")
        for key, check in fields.items():
            bare = key.removesuffix("?")
            if bare in value:
                check(value[bare], f"{where}.{bare}")
            else:
                _require(key != bare, f"{where}.{bare}", "there")
        for key, each in value.items():
            _require(not closed or key in known, f"{where}.{key}", "known to this release")
            if also is not None:
                also(each, f"{where}.{key}")

    return checked


def same_length(*keys: str) -> Check:
    """Lists of a record, where they are there."""

    def checked(value: Any, where: str) -> None:
        lengths = [len(value[key]) for key in keys if isinstance(value.get(key), Sequence)]
        _require(len(set(lengths)) <= 1, where, f"of one length in {', '.join(keys)}")

    return checked


def both(*checks: Check) -> Check:
    """What all of them take."""

    def checked(value: Any, where: str) -> None:
        for each in checks:
            each(value, where)

    return checked


def square(value: Any, where: str) -> None:
    """Rows of counts, as many as columns."""
    listed(listed(count))(value, where)
    _require(all(len(row) == len(value) for row in value), where, "a square table")


def require(value: Any, check: Check) -> None:
    """Raise `Mismatch` unless a whole file is as it must be."""
    check(value, "")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _require(good: bool, where: str, wanted: str) -> None:
    if not good:
        raise Mismatch(f"{where.removeprefix('.') or 'its content'} must be {wanted}")
