"""Text for a terminal: errors in one line that says what to do, and results without control characters."""

import contextlib
import errno
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from rich.console import Console

from dmt.errors import DmtError

if TYPE_CHECKING:
    from rich.table import Table

FULL = (errno.ENOSPC, errno.EDQUOT)
DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)

NARROWEST = 20
"""Columns of the narrowest terminal that text is fitted to."""

_OUT = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
_WIDTH_IN_FILES = 110


def show(text: str) -> None:
    """Print a result to standard output as it is: names such as ``[red]`` and ``:smile:`` are shown, not obeyed."""
    _OUT.print(text)


def show_table(table: "Table", columns: int | None) -> None:
    """Print a table to standard output, in a terminal of that many columns or, if it is None, in a file."""
    wide = columns or max(_WIDTH_IN_FILES, _OUT.width)
    Console(highlight=False, markup=False, emoji=False, width=wide).print(table)


def line(error: Exception) -> str:
    """Return an error as one line for standard error, with all unprintable characters escaped."""
    from dmt.data.folders.photo_files import shown

    return shown(_text(error))


def width(stream: TextIO | None = None) -> int | None:
    """Return the columns of the terminal that a stream (standard output by default) writes to; None for no terminal."""
    stream = stream or sys.stdout
    return max(Console(file=stream).width, NARROWEST) if stream.isatty() else None


def note(text: str) -> None:
    """Print a line to standard error; on a terminal it wraps between words."""
    from dmt.results import narrow_tables

    with contextlib.suppress(OSError):  # the terminal may be gone; the exit code still tells
        print(narrow_tables.sentences(text, width(sys.stderr)), file=sys.stderr, flush=True)


def result(text: str) -> str:
    """Return lines with control characters escaped: the names in a run of unknown origin may contain some."""
    from dmt.data.folders.photo_files import shown

    return "\n".join(map(shown, text.split("\n")))


def _text(error: Exception) -> str:
    if isinstance(error, DmtError):
        return str(error)
    if isinstance(error, MemoryError):
        return _memory("this computer")
    if isinstance(error, OSError):
        return _of_system(error)
    if isinstance(error, RuntimeError) and (short := _of_torch(error)) is not None:
        return short
    said = " ".join(str(error).split()) or "without a message"
    return (
        f"unexpected {type(error).__name__}: {said}; this is a bug in dmt: repeat the command with "
        "dmt --debug, and report what it shows"
    )


def _of_system(error: OSError) -> str:
    where = error.filename if isinstance(error.filename, str) else None
    if error.errno in FULL:
        what = f"{where} cannot be written: the" if where else "the"
        return f"{what} disk is full ({error.strerror}); free some space, then repeat the command"
    if error.errno == errno.ENOMEM:
        return _memory("this computer")
    if error.errno in DENIED and where:
        return _denied(where, error.strerror or str(error))
    return f"{where or 'the system'}: {error.strerror or error}"


def _denied(where: str, reason: str) -> str:
    """Return what to do if a file or folder may not be read or, far more often, may not be written."""
    if Path(where).exists() and not os.access(where, os.R_OK):
        return f"{where} cannot be read ({reason}); allow reading it, then repeat the command"
    return f"{where} cannot be written ({reason}); allow it, or give another --out"


def _of_torch(error: RuntimeError) -> str | None:
    """Return a message if memory ran out, else None: torch has an error type for GPUs, but only a text for the host."""
    import torch

    if isinstance(error, torch.OutOfMemoryError):
        return _memory("the GPU")
    return _memory("this computer") if "allocate memory" in str(error) else None


def _memory(who: str) -> str:
    return f"{who} is out of memory; set batch, batch_pseudo and batch_labeled lower, or use smaller images"
