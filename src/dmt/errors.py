"""Errors that a user can cause or fix. Each is one line that says what to do; the command exits with code 2."""

import difflib
from collections.abc import Iterable


class DmtError(Exception):
    """Base of all errors that the user can fix. The message is one line and names the remedy."""


class ConfigError(DmtError):
    """An unknown name or key, or a value of the wrong type or out of range."""


class DataError(DmtError):
    """A data set that is missing, incomplete or damaged."""


class OtherClassesError(DataError):
    """A user's folder has other classes than a run was made for. Who knows the run says which it is, and what to do."""


class UnreachableError(DmtError):
    """Something on another machine did not answer. It may be intact, and another attempt may reach it."""


class RunError(DmtError):
    """A run folder cannot be used as asked: made with another configuration, in use, unfinished or damaged."""


class DivergenceError(DmtError):
    """A loss or parameter became NaN or infinite."""


class LostProcessError(DmtError):
    """One of several processes that train together has ended unexpectedly."""

    def __init__(self) -> None:
        super().__init__("another process of the run ended too early; repeat the command to resume")


class SaidElsewhereError(DmtError):
    """The run failed, and another of its processes has already reported why; this one exits silently."""


FEW = 12
"""Greatest number of names that an error lists."""


def unknown(kind: str, name: str, known: Iterable[str], lister: str = "") -> ConfigError:
    """Return the error for an unknown name, with a suggestion; for ``lister`` see `instead`."""
    return ConfigError(f"unknown {kind} '{name}'; {instead(name, known, lister)}")


def shown(name: object) -> str:
    """Return a name for display on one line: newlines and unprintable or invalid characters are escaped."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in str(name))


def instead(name: str, known: Iterable[str], lister: str = "") -> str:
    """Suggest a replacement for an unknown name: a known one that is close, else where the known ones are listed.

    Args:
        name: the unknown name.
        known: all names.
        lister: the command that lists them, named if they are many.
    """
    names = sorted(known)
    if near := difflib.get_close_matches(name, names, n=1):
        return f"did you mean '{near[0]}'?"
    if lister and len(names) > FEW:
        return f"{lister} lists all"
    return f"choose from: {', '.join(names[:FEW])}" + (f" and {len(names) - FEW} more" if len(names) > FEW else "")
