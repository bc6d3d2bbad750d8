"""Tables of results as plain text."""

import io
import math
import statistics
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dmt.results import narrow_tables

UNKNOWN = "–"


def spread(values: Sequence[float]) -> str:
    """Format values as ``mean ± standard deviation``, a single value alone, and none as a dash; NaN is ignored."""
    values = [value for value in values if not math.isnan(value)]
    if not values:
        return UNKNOWN
    mean = f"{statistics.fmean(values):.2f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.2f}"


def grid(title: str, columns: Sequence[str], rows: dict[str, list[float]], width: int | None = None) -> str:
    """Return named rows of percentages as a text table, for a terminal of a width or, if it is None, for a file."""
    rows_of = table(title, "", *columns)
    for name, values in rows.items():
        rows_of.add_row(Text(name), *(UNKNOWN if math.isnan(value) else f"{value:.2f}" for value in values))
    return text(narrow_tables.fit(rows_of, width), width)


def table(title: str, *columns: str) -> Table:
    table = Table(title=title)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=True)
    return table


def filled(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return a table of these rows, leaving out columns without any known value."""
    known = [place for place in range(len(columns)) if any(row[place] != UNKNOWN for row in rows)]
    some = table(title, *(columns[place] for place in known))
    for row in rows:
        some.add_row(*(row[place] for place in known))
    return some


def heads(table: Table) -> list[str]:
    """Return the names of a table's columns, with wrapped ones joined."""
    return [str(column.header).replace("\n", " ") for column in table.columns]


def text(table: Table, width: int | None = None) -> str:
    """Return a table as plain text, with its title above and its caption below wrapped to the width."""
    title, caption, text = str(table.title), table.caption, io.StringIO()
    table.title = table.caption = None
    Console(file=text, width=narrow_tables.WIDEST, color_system=None, markup=False, emoji=False).print(table)
    below = "" if caption is None else f"{narrow_tables.sentences(str(caption), width)}\n"
    lines = "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())
    return f"{narrow_tables.sentences(title, width)}\n{lines}{below}"
