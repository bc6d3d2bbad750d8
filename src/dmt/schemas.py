"""What the JSON files that dmt reads must hold. They can be damaged, written by hand, or come from a stranger."""

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


def listed(check: Check) -> Check:
    """A list of any length."""

    def checked(value: Any, where: str) -> None:
        _require(isinstance(value, list), where, "a list")
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


# --- a run ---

_scalar = maybe(either(flag, number, text))
_option = either(_scalar, listed(either(_scalar, listed(_scalar))))

STARTS = by_name(record({"name": text, "digest": text}))

_stage = record(
    {
        "name": text,
        "lines?": listed(text),
        "round": count,
        "place": name,
        "identity?": text,
        "steps?": count,
        "start?": maybe(text),
        "labels?": maybe(record({"by": text, "line?": text, "fraction?": number, "copy?": text, "per_class?": flag})),
        "objective?": record({"weighting?": text}),
        "schedule?": record({"epochs?": number, "rate?": number, "descent?": record({"rate": number})}),
    }
)

_job = record(
    {"method": text, "seed": whole, "stages": listed(_stage), "results": listed(text), "keep?": text}, closed=True
)

RUN = record(
    {
        "data": text,
        "folder?": maybe(text),
        "config": by_name(_option),
        "images": text,
        "starts?": both(STARTS, record({"A": record({}), "B": record({})})),
        "threads": positive,
        "warnings?": maybe(listed(text)),
        "jobs": listed(_job),
    }
)

SPLIT = record({"labeled": listed(text), "unlabeled?": listed(text), "validation?": listed(text)})

STATE = record(
    {
        "done": flag,
        "step": count,
        "steps": count,
        "device": text,
        "checkpoint": name,
        "digests?": by_name(text),
        "ledger": record({"count": count, "sums": by_name(number)}),
        "seconds": number,
    }
)

_coverage = both(record({"predicted": listed(count), "kept": listed(count)}), same_length("predicted", "kept"))

PSEUDO = record({"round?": count, "fraction?": number})

PSEUDO_OF_PIXELS = record({"images": count, "kept": count, "of": count, "coverage": _coverage, "bytes?": count})

_counted = maybe(either(number, listed(maybe(number)), by_name(maybe(either(number, listed(maybe(number)))))))

AUDIT = by_name(_counted)

SCORE = both(
    record(
        {
            "accuracy": maybe(number),
            "fine_grained?": maybe(number),
            "mean_iou?": maybe(number),
            "count?": count,
            "per_class?": listed(maybe(number)),
            "iou?": listed(maybe(number)),
            "confusion?": square,
            "calibration?": listed(listed(maybe(number))),
            "calibration_error?": maybe(number),
            "absent?": listed(count),
        }
    ),
    same_length("per_class", "iou", "confusion"),
)

_by_copy = by_name(SCORE)

PAIR = record({"scores": _by_copy, "error": maybe(number)})

# --- lines of journals, by kind ---

_finding = record({"kind": text, "where": text, "text": text, "remedy": text, "about?": text}, closed=True)

LINES: dict[str, Check] = {
    "session": record({"dmt?": text}),
    "interval": record({"step": count, "seconds?": number}, also=maybe(number)),
    "labels": record({"kept": count, "of": count, "coverage": _coverage, "labeled?": listed(count)}),
    "round": record(
        {
            "scores": by_name(either(by_name(_by_copy), _by_copy)),
            "audit": maybe(AUDIT),
            "cost": record({"seconds?": number, "images?": number}, also=maybe(number)),
        }
    ),
    "guard": record({"findings": listed(_finding)}),
}


def line(value: Any, where: str) -> None:
    """A line of a journal, by its kind; kinds of other releases are left alone."""
    record({"kind": text})(value, where)
    check = LINES.get(value["kind"], anything)
    check({key: each for key, each in value.items() if key != "kind"}, where)


# --- what can be made again ---

SQUARES = record({"digests": listed(maybe(text)), "skipped": listed(text)})

# --- beside runs ---

TUNING = record(
    {
        "data": text,
        "method": text,
        "start": by_name(text),
        "config": by_name(_option),
        "seeds?": listed(whole),
        "trials": listed(record({"name": text, "failed?": maybe(text)})),
    }
)

AUDITED = record({"run": text, "method": text, "seed": whole, "folds": count})

PACK = record({"run": name, "sha256": text, "parts": both(by_name(text), named), "files?": listed(text)})

_net = record(
    {
        "name": text,
        "classes": positive,
        "shape": listed(positive),
        "pixels": flag,
        "normalization": record({"mean": listed(number), "std": listed(number)}),
    }
)

CARD = record(
    {
        "spec": _net,
        "second?": maybe(_net),
        "name": text,
        "longest": maybe(positive),
        "sha256": text,
        "classes": listed(text),
        "palette": listed(listed(count)),
    }
)
