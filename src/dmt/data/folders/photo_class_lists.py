"""Read and write ``classes.txt``, which names the classes of masks."""

import re
from collections.abc import Sequence
from pathlib import Path

from dmt.data.folders import photo_files
from dmt.data.folders.contents import Color
from dmt.data.pixels.masks import VOID
from dmt.errors import DataError

_VOID_NAME = re.compile(r"void|ignore|255\s.*", re.IGNORECASE)
_NAME_FIRST = re.compile(
    r"(?P<name>\S.*?)[\s,;:]+(?P<red>\d{1,3})[\s,;]+(?P<green>\d{1,3})[\s,;]+(?P<blue>\d{1,3})[:;,]*"
)
_COLOR_FIRST = re.compile(r"(?P<red>\d{1,3})[\s,;]+(?P<green>\d{1,3})[\s,;]+(?P<blue>\d{1,3})[\s,;:]+(?P<name>\S.*)")


def read_classes(path: Path) -> tuple[tuple[str, ...], dict[Color, int] | None]:
    """Read the names of the classes and, if the file gives colors, the class of each color.

    A line is ``name``, ``number name``, ``name r g b`` or ``r g b name``, the same for all lines. The number 255, and
    the names void and ignore with a color, stand for pixels without a label.
    """
    rows = lines(path)
    colored = [_NAME_FIRST.fullmatch(row) for row in rows]
    if not any(colored):
        colored = [_COLOR_FIRST.fullmatch(row) for row in rows]
    if not any(colored):
        return _checked(path, _unnumbered(path, rows)), None
    said: dict[Color, str] = {}
    for line, match in zip(rows, colored, strict=True):
        if match is None:
            raise DataError(f"{photo_files.shown(path)}: '{line}' has no color, but others have; write 'name r g b'")
        color = (int(match["red"]), int(match["green"]), int(match["blue"]))
        if max(color) > 255 or color in said:
            problem = "is there twice" if color in said else "is outside 0..255"
            raise DataError(f"{photo_files.shown(path)}: the color of '{line}' {problem}; give each class its own")
        said[color] = match["name"]
    named = {color: name for color, name in said.items() if not _VOID_NAME.fullmatch(name)}
    classes = _checked(path, _unnumbered(path, list(named.values())))
    if set(classes) != set(named.values()):  # the names have numbers before them
        named = {color: name.split(maxsplit=1)[1] for color, name in named.items()}
    return classes, {color: classes.index(named[color]) if color in named else VOID for color in said}


def format_classes(classes: Sequence[str], colors: dict[Color, int] | None) -> str:
    """Return the text of a classes.txt from which ``read_classes`` returns these classes and colors."""
    if colors is None:
        return "".join(f"{number} {name}\n" for number, name in enumerate(classes))
    rows = sorted(colors.items(), key=lambda row: row[1])
    names = [*classes, *["void"] * (1 + VOID - len(classes))]
    return "".join(f"{names[number]} {color[0]} {color[1]} {color[2]}\n" for color, number in rows)


def lines(path: Path) -> list[str]:
    """Read the lines of a text file, stripped and without empty ones."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = type(error).__name__
        raise DataError(f"cannot read {photo_files.shown(path)} ({reason}); save it as UTF-8 text") from error
    return [line.strip() for line in text.splitlines() if line.strip()]


def _unnumbered(path: Path, names: list[str]) -> list[str]:
    """Remove the numbers before the names and sort by them, if every line has one; a line for 255 is dropped."""
    rows = [name.split(maxsplit=1) for name in names]
    if not all(len(row) == 2 and row[0].isdecimal() for row in rows):
        return names
    named = {int(number): name for number, name in rows if int(number) != VOID}
    if sorted(named) != list(range(len(named))):
        raise DataError(f"{photo_files.shown(path)}: the numbers must be 0, 1, 2, … without a gap, as in the masks")
    return [named[number] for number in range(len(named))]


def _checked(path: Path, names: list[str]) -> tuple[str, ...]:
    if not 2 <= len(names) <= VOID or len(set(names)) < len(names):
        raise DataError(f"{photo_files.shown(path)} must name 2 to {VOID} different classes, one a line")
    return tuple(names)
