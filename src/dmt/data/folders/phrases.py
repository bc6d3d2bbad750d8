"""Phrases of the doctor's report: lists of names, counts and size ranges."""

from collections.abc import Iterable

from dmt.data.folders.photo_files import shown
from dmt.data.folders.survey import Spread

NAMED = 5  # names that are listed before "and N more"


def listed(names: Iterable[str], before: str = "") -> str:
    """Return the first few names in quotes, preceded by ``before``; an empty text if there are none."""
    said = enough(quoted(name) for name in names)
    return f"{before}{said}" if said else ""


def enough(items: Iterable[str], between: str = ", ") -> str:
    """Join the first few items and say how many more there are."""
    every = list(items)
    more = f" and {len(every) - NAMED:,} more" if len(every) > NAMED else ""
    return between.join(every[:NAMED]) + more


def quoted(name: str) -> str:
    """Quote a name, with unprintable characters escaped so that it stays on one line."""
    return f"'{shown(name)}'"


def count(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun, in the singular or the plural."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def spread(values: Spread) -> str:
    """Return the least, greatest and median value as text, or the one value if all are equal."""
    least, median, greatest = (f"{round(value, 1):,g}" for value in values)
    return least if least == greatest else f"{least} to {greatest} (median {median})"
