"""Validators of JSON content, combined from simple ones; `dmt.schemas` has one for each file."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

LARGEST = 1e300
"""Bound on the magnitude of numbers. None that dmt writes comes near it, and sums of such numbers stay finite."""

LONGEST = 1 << 62
"""Bound on counts, which must fit into 64 bits."""

Check = Callable[[Any, str], None]
"""A validator: called with a value and its position in the file, it raises `Mismatch` if the value is invalid."""


class Mismatch(ValueError):
    """A value is invalid. The message names the value and says what it must be."""


# --- kinds of values ---


def anything(value: Any, where: str) -> None:
    """Accept any value."""


def flag(value: Any, where: str) -> None:
    _require(isinstance(value, bool), where, "true or false")


def text(value: Any, where: str) -> None:
    _require(isinstance(value, str), where, "text")


def whole(value: Any, where: str) -> None:
    """Accept integers with any number of digits: seeds may be large."""
    _require(_is_whole(value), where, "a whole number")


def count(value: Any, where: str) -> None:
    _require(_is_whole(value) and 0 <= value < LONGEST, where, "a whole number of 0 or more")


def positive(value: Any, where: str) -> None:
    _require(_is_whole(value) and 0 < value < LONGEST, where, "a whole number above 0")


def number(value: Any, where: str) -> None:
    """Accept finite numbers: Python's JSON parser also reads NaN, Infinity and integers of any size."""
    good = isinstance(value, float) or _is_whole(value)
    _require(good and -LARGEST < value < LARGEST, where, "a number")


def name(value: Any, where: str) -> None:
    """Accept the bare name of a file or folder, but no path, which could lead out of the expected folder."""
    good = isinstance(value, str) and value == Path(value).name and value not in ("", ".", "..") and "\0" not in value
    _require(good, where, "the name of a file, not a path")


def named(value: Any, where: str) -> None:
    """Accept an object whose keys are bare names of files."""
    for key in value:
        name(key, f"{where}.{key}")


def maybe(check: Check) -> Check:
    """Accept null and whatever the check accepts."""

    def checked(value: Any, where: str) -> None:
        if value is not None:
            check(value, where)

    return checked


def either(*checks: Check) -> Check:
    """Accept a value that passes at least one of the checks."""

    def checked(value: Any, where: str) -> None:
        for each in checks[:-1]:
            try:
                return each(value, where)
            except Mismatch:
                continue
        return checks[-1](value, where)

    return checked


def listed(check: Check, length: int | None = None) -> Check:
    """Accept a list of items that pass the check, of any length or of the given one."""

    def checked(value: Any, where: str) -> None:
        _require(isinstance(value, list), where, "a list")
        _require(length in (None, len(value)), where, f"a list of {length}")
        for position, each in enumerate(value):
            check(each, f"{where}[{position}]")

    return checked


def by_name(check: Check) -> Check:
    """Accept an object with arbitrary keys whose values pass the check."""

    def checked(value: Any, where: str) -> None:
        _require(isinstance(value, dict), where, "an object")
        for key, each in value.items():
            check(each, f"{where}.{key}")

    return checked


def record(fields: Mapping[str, Check], *, also: Check | None = None, closed: bool = False) -> Check:
    """Accept an object with known keys.

    Args:
        fields: checks of the values by key; a key that ends in a question mark is optional.
        also: an additional check of all values, those of unknown keys included.
        closed: whether unknown keys are refused.
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
    """Accept an object in which those of the named entries that are lists have equal lengths."""

    def checked(value: Any, where: str) -> None:
        lengths = [len(value[key]) for key in keys if isinstance(value.get(key), Sequence)]
        _require(len(set(lengths)) <= 1, where, f"of one length in {', '.join(keys)}")

    return checked


def both(*checks: Check) -> Check:
    """Accept a value that passes all checks."""

    def checked(value: Any, where: str) -> None:
        for each in checks:
            each(value, where)

    return checked


def square(value: Any, where: str) -> None:
    """Accept a square table of counts, as a list of rows."""
    listed(listed(count))(value, where)
    _require(all(len(row) == len(value) for row in value), where, "a square table")


def require(value: Any, check: Check) -> None:
    """Raise `Mismatch` unless the content of a file passes the check."""
    check(value, "")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _require(good: bool, where: str, wanted: str) -> None:
    if not good:
        raise Mismatch(f"{where.removeprefix('.') or 'its content'} must be {wanted}")
