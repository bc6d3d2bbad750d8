"""CSV files that are safe to open in a spreadsheet program: no cell is run as a formula.

A cell that looks like the beginning of a formula is prefixed with an apostrophe, which marks text in these programs.
Numbers are left alone, and `plain` restores the original text.
"""

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """Return a CSV table, whose first line holds the column names."""
    return b"".join(lines(columns, rows))


def lines(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[bytes]:
    """Yield a CSV table line by line, the column names first."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in itertools.chain([columns], ([cell(str(each)) for each in row] for row in rows)):
        writer.writerow(row)
        yield text.getvalue().encode(errors="backslashreplace")  # a tar file may hold names that are not UTF-8
        text.seek(0)
        text.truncate()


def cell(text: str) -> str:
    """Return a cell's text as it is written to a file."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def plain(found: str) -> str:
    """Return the text of a cell that was read from a file: the inverse of `cell`."""
    rest = found[1:]
    return rest if found.startswith("'") and cell(rest) == found else found
