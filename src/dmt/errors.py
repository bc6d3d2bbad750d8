"""What a user can cause, each as one clear line that says what to do. The command turns these into exit code 2."""

import difflib
from collections.abc import Iterable


class DmtError(Exception):
    """Anything the user can mend. Its text is one line and names the remedy."""


class ConfigError(DmtError):
    """An unknown name or key, or a value of the wrong type or out of range."""


class DataError(DmtError):
    """A data set that is missing, incomplete or damaged."""


class UnreachableError(DmtError):
    """Something elsewhere that did not answer: it may be as it should, and another attempt may reach it."""


class RunError(DmtError):
    """A run folder that cannot be used as asked: made by another configuration, in use, unfinished, damaged."""


class DivergenceError(DmtError):
    """A loss or parameter stopped being finite."""


class LostProcessError(DmtError):
    """One of several processes that train together is gone."""

    def __init__(self) -> None:
        super().__init__("another process of the run ended too early; repeat the command to resume")


class SaidElsewhereError(DmtError):
    """Another process of the run has said already why it ends."""


def unknown(kind: str, name: str, known: Iterable[str]) -> ConfigError:
    """The error for a name that does not exist, naming the nearest one that does."""
    return ConfigError(f"unknown {kind} '{name}'; {instead(name, known)}")


def instead(name: str, known: Iterable[str]) -> str:
    """What to take instead of a name that does not exist: the nearest one that does, or else any of them."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    few = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    return f"did you mean '{near[0]}'?" if near else f"choose from: {few}"
