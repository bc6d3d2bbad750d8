"""Read ``classes.txt``, which names the classes of masks."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from dmt.data.pixels.masks import VOID
from dmt.data.pixels.palettes import Color
from dmt.errors import DataError, shown

_VOID_NAME = re.compile(r"void|ignore|255[\s:;,=].*", re.IGNORECASE)
_NAME_FIRST = re.compile(
    r"(?P<name>\S.*?)[\s,;:]+(?P<red>\d{1,3})[\s,;]+(?P<green>\d{1,3})[\s,;]+(?P<blue>\d{1,3})[:;,]*"
)
_COLOR_FIRST = re.compile(r"(?P<red>\d{1,3})[\s,;]+(?P<green>\d{1,3})[\s,;]+(?P<blue>\d{1,3})[\s,;:]+(?P<name>\S.*)")
_NUMBER_FIRST = re.compile(r"(?P<number>[0-9]+)(?:\s*[:;,=]\s*|[.)]\s+|\s+(?:-\s+)?)(?P<name>\S.*)")
_NUMBER_LAST = re.compile(r"(?P<name>\S.*?)(?:\s*[:;,=]\s*|\s+(?:-\s+)?)(?P<number>[0-9]+)")


def read_classes(path: Path) -> tuple[tuple[str, ...], dict[Color, int] | None]:
    """Read the names of the classes and, if the file gives colors, the class of each color.

    A line is ``name``, ``number name``, ``name r g b`` or ``r g b name``, the same for all lines. A colon, comma or
    equals sign may follow the number. The number 255, and the names void and ignore with a color, stand for pixels
    without a label. Lines that begin with # are comments.
    """
    rows = [line for line in lines(path) if not line.startswith("#")]
    colored = [_NAME_FIRST.fullmatch(row) for row in rows]
    if not any(colored):
        colored = [_COLOR_FIRST.fullmatch(row) for row in rows]
    if not any(colored):
        names = _checked(path, _unnumbered(path, rows).values())
        if names == tuple(rows):
            _require_numbers_first(path, rows)
        return names, None
    said: dict[Color, str] = {}
    for line, match in zip(rows, colored, strict=True):
        if match is None:
            raise DataError(f"{shown(path)}: '{line}' has no color, but others have; write 'name r g b'")
        color = (int(match["red"]), int(match["green"]), int(match["blue"]))
        if max(color) > 255 or color in said:
            problem = "is there twice" if color in said else "is outside 0..255"
            raise DataError(f"{shown(path)}: the color of '{line}' {problem}; give each class its own")
        said[color] = match["name"]
    named = {color: name for color, name in said.items() if not _VOID_NAME.fullmatch(name)}
    plain = _unnumbered(path, list(named.values()))
    classes = _checked(path, plain.values())
    return classes, {color: classes.index(plain[named[color]]) if color in named else VOID for color in said}


def lines(path: Path) -> list[str]:
    """Read the lines of a text file, stripped and without empty ones."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = type(error).__name__
        raise DataError(f"cannot read {shown(path)} ({reason}); save it as UTF-8 text") from error
    return [line.strip() for line in text.splitlines() if line.strip()]


def _unnumbered(path: Path, rows: Sequence[str]) -> dict[str, str]:
    """Map lines to their names without the numbers before them, in the order of these; leave out a line for 255."""
    if len(set(rows)) < len(rows):
        raise _unlike(path)
    found = {row: match for row in rows if (match := _NUMBER_FIRST.fullmatch(row))}
    numbers = {row: int(match["number"]) for row, match in found.items() if int(match["number"]) != VOID}
    counted = sorted(numbers.values()) == list(range(len(numbers)))
    if not (counted and len(found) == len(rows)) and not _identified(list(found.values()), len(rows)):
        return {row: row for row in rows}
    bare = next((row for row in rows if row not in found), None)
    if bare is not None:
        raise DataError(
            f"{shown(path)}: '{shown(bare)}' has no number before it, but others have; "
            "write 'number name' on every line"
        )
    if not counted:
        raise DataError(
            f"{shown(path)}: the numbers must be 0, 1, 2, … without a gap, as in the masks; "
            "if they are part of the names, write a number before each name"
        )
    return {row: found[row]["name"] for row in sorted(numbers, key=numbers.__getitem__)}


def _identified(found: Sequence[re.Match[str]], lines: int) -> bool:
    """Return whether numbers stand beside names, rather than being a part of them as in "10 cm" and "20 cm".

    They do if at least half of the lines have one and what is left without it still tells the classes apart.
    """
    return 2 * len(found) >= lines and len({match["name"] for match in found}) == len(found)


def _require_numbers_first(path: Path, rows: Sequence[str]) -> None:
    """Refuse lines ``name number``: whether the order or the numbers count is unclear."""
    found = [match for row in rows if (match := _NUMBER_LAST.fullmatch(row))]
    numbers = {int(match["number"]) for match in found} - {VOID}
    if len(found) == len(rows) and _identified(found, len(rows)) and max(numbers, default=0) <= len(rows):
        first = found[0]
        raise DataError(
            f"{shown(path)}: '{shown(first.string)}' ends in a number, as all lines do; "
            f"write it first, as in '{first['number']} {shown(first['name'])}', "
            "or if it is part of the name, write the number in the masks before the whole name"
        )


def _checked(path: Path, names: Iterable[str]) -> tuple[str, ...]:
    classes = tuple(names)
    if not 2 <= len(classes) <= VOID or len(set(classes)) < len(classes):
        raise _unlike(path)
    return classes


def _unlike(path: Path) -> DataError:
    return DataError(f"{shown(path)} must name 2 to {VOID} different classes, one a line")
