"""How the doctor names files, counts and sizes."""

from collections.abc import Iterable

from dmt.data.folders.photo_files import shown
from dmt.data.folders.survey import Spread

NAMED = 5  # files that are named before "and N more"


def listed(names: Iterable[str], before: str = "") -> str:
    """The first few names in quotes, after ``before``; nothing of none."""
    said = enough(quoted(name) for name in names)
    return f"{before}{said}" if said else ""


def enough(items: Iterable[str], between: str = ", ") -> str:
    """The first few, and how many more."""
    every = list(items)
    more = f" and {len(every) - NAMED:,} more" if len(every) > NAMED else ""
    return between.join(every[:NAMED]) + more


def quoted(name: str) -> str:
    """A name in one line, whatever it is made of."""
    return f"'{shown(name)}'"


def count(number: int, one: str, many: str | None = None) -> str:
    """So many things, in the singular or the plural."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def spread(values: Spread) -> str:
    """From the least to the greatest."""
    least, median, greatest = (f"{round(value, 1):,g}" for value in values)
    return least if least == greatest else f"{least} to {greatest} (median {median})"
