"""Fitting tables and sentences to the width of a terminal: text wraps between words, numbers are never broken."""

import re
import textwrap
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len, chop_cells
from rich.console import Console, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

GAP = 2
"""Spaces between two columns."""

LEAST = 8
"""Minimum width of a column in which words are broken, if nothing else helps."""

WIDEST = 400
"""More columns than any table needs, for output of unlimited width."""

ATOM = re.compile(r"(?:±|to) \S+|\S+")
"""Text that stays in one line: a word, a standard deviation with its sign, or the upper end of a range."""

GLUE = re.compile(r"(?<=±) | (?=%)")
"""Spaces at which sentences do not wrap."""


@dataclass(frozen=True)
class _Column:
    """One column as text; its head may wrap like its cells."""

    head: str
    cells: tuple[str, ...]
    justify: JustifyMethod

    @property
    def natural(self) -> int:
        return max(cell_len(line) for each in (self.head, *self.cells) for line in each.split("\n"))

    @property
    def least(self) -> int:
        """Width of the longest word."""
        return max((cell_len(atom) for each in (self.head, *self.cells) for atom in ATOM.findall(each)), default=1)


def sentences(text: str, width: int | None) -> str:
    """Wrap text between words, unless ``width`` is None. Longer words, such as paths, are not broken."""
    if width is None:
        return text
    glued = GLUE.sub("\xa0", text)
    lines = (textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) for line in glued.split("\n"))
    return "\n".join("\n".join(line) for line in lines).replace("\xa0", " ")


def fit(table: Table, width: int | None, optional: Sequence[Collection[str]] = ()) -> Table:
    """Return the table in a width that fits the terminal, as far as possible; unchanged if it fits already.

    Heads and cells first wrap between words; if that is not enough, optional columns are left out, which the table's
    caption lists; finally, long words are broken.

    Args:
        table: the table.
        width: number of characters; None for unlimited width.
        optional: groups of column heads that are left out together, the least important group first.
    """
    if width is None or Console(width=WIDEST).measure(table).maximum <= width:
        return table
    columns = [_column(each.header, each.cells, each.justify) for each in table.columns]
    left_out: list[str] = []
    for group in optional:
        if _total([column.least for column in columns]) <= width:
            break
        left_out += [column.head for column in columns if column.head in group]
        columns = [column for column in columns if column.head not in group]
    return _narrow(table, columns, _widths(columns, width), left_out)


def _column(head: RenderableType, cells: Iterable[RenderableType], justify: JustifyMethod) -> _Column:
    return _Column(str(head), tuple(str(cell) for cell in cells), justify)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _widths(columns: Sequence[_Column], width: int) -> list[int]:
    """Shrink columns from their natural widths, the widest first; below longest words only once all have got there."""
    widths = [column.natural for column in columns]
    for floors in ([column.least for column in columns], [min(column.least, LEAST) for column in columns]):
        while _total(widths) > width:
            place = max(range(len(widths)), key=lambda at: (widths[at] > floors[at], widths[at]))
            if widths[place] <= floors[place]:
                break
            widths[place] -= 1
    return widths


def _narrow(table: Table, columns: Sequence[_Column], widths: Sequence[int], left_out: Sequence[str]) -> Table:
    found = Table(title=table.title, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    for column, width in zip(columns, widths, strict=True):
        found.add_column(_wrapped(column.head, width), justify=column.justify, no_wrap=True)
    for row in zip(*(column.cells for column in columns), strict=True):
        found.add_row(*(Text(_wrapped(cell, width)) for cell, width in zip(row, widths, strict=True)))
    if left_out:
        found.caption = f"not shown for lack of width: {', '.join(left_out)}"
    return found


def _wrapped(text: str, width: int) -> str:
    """Wrap text to lines of at most this width; longer words are broken."""
    return "\n".join(line for each in text.split("\n") for line in _lines(each, width))


def _lines(text: str, width: int) -> list[str]:
    if cell_len(text) <= width:
        return [text]
    lines: list[str] = []
    for atom in ATOM.findall(text):
        if lines and cell_len(lines[-1]) + 1 + cell_len(atom) <= width:
            lines[-1] += f" {atom}"
        else:
            lines += chop_cells(atom, width)
    return lines
