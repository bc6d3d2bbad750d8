"""CSV for people: a spreadsheet program shows every cell and runs none.

A cell that begins as a formula does gets an apostrophe in front, which says "text" to these programs. Numbers stay
numbers, and `plain` gives back what was written.
"""

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """A table with a first line of columns."""
    return b"".join(lines(columns, rows))


def lines(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[bytes]:
    """The same line by line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in itertools.chain([columns], ([cell(str(each)) for each in row] for row in rows)):
        writer.writerow(row)
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()


def cell(text: str) -> str:
    """As it stands in a file."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def plain(found: str) -> str:
    """As it was before `cell`."""
    rest = found[1:]
    return rest if found.startswith("'") and cell(rest) == found else found
