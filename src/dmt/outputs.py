"""What a command may write over: an earlier output of the same kind, and nothing else that someone may need."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dmt.errors import RunError
from dmt.run_files import MANIFEST, PAIRS, SAMPLES, SESSIONS, SKIPPED, SPLITS, STAGES

OURS = frozenset({MANIFEST, SESSIONS, SKIPPED, SPLITS, SAMPLES, STAGES, PAIRS})
"""Names in a run's folder that only training writes; those that begin with a dot are its own too."""

HEAD = 4096
"""Bytes at the beginning of a file that say what it is."""


@dataclass(frozen=True)
class Kind:
    """What a command writes.

    Attributes:
        name: for people.
        mark: stands near the beginning of each such file; endings are the user's choice and say little.
    """

    name: str
    mark: bytes

    def is_in(self, path: Path) -> bool:
        """Whether a file is of this kind, or empty, so that nothing is lost with it."""
        with path.open("rb") as file:
            head = file.read(HEAD)
        return not head or self.mark in head


def require_file(path: Path, kind: Kind, *, inputs: Iterable[Path] = (), force: bool = False) -> None:
    """Refuse to write a file over something else, unless ``force``; a run's own files in any case.

    Args:
        inputs: files that the command reads.
    """
    require_free(path)
    if path.is_dir():
        raise RunError(f"{path} is a folder; give --out a file")
    if force or not path.exists():
        return
    if any(_same(path, each) for each in inputs):
        raise RunError(f"{path} is one of the images to read; give another --out, or --force to overwrite it")
    if not path.is_file() or not kind.is_in(path):
        raise RunError(
            f"{path} is there already and is not {kind.name}; give another --out, or --force to replace it "
            "(a * right after --out names the first file it matches)"
        )


def require_content(path: Path, content: bytes, *, force: bool = False) -> None:
    """The same for a file whose content is always the same: one that has it may be written again."""
    require_free(path)
    if not force and path.exists() and not (path.is_file() and path.read_bytes() in (b"", content)):
        raise RunError(f"{path} is there already and differs; give another --out, or --force to replace it")


def require_free(path: Path) -> None:
    """Refuse a place, of a file or a folder, that belongs to the inside of a run."""
    for run, inside in _runs_above(path):
        if inside.parts[0] in OURS or inside.parts[0].startswith("."):
            raise RunError(f"{path} belongs to the run in {run}; give another --out")


def require_outside_runs(path: Path) -> None:
    """Refuse a new folder anywhere in a run: what fills folders of its own would be packed and swept with the run."""
    for run, _ in _runs_above(path):
        raise RunError(f"{path} is inside the run in {run}; give another --out")


def folder_around(path: Path, folders: Iterable[Path]) -> Path | None:
    """The first of these folders that a place is or lies in."""
    there = path.resolve()
    return next((folder for folder in folders if there.is_relative_to(folder.resolve())), None)


def _runs_above(path: Path) -> Iterator[tuple[Path, Path]]:
    """(run folder, path below it), where a path lies and, if it is a link, where it leads."""
    there = Path(os.path.abspath(path))  # noqa: PTH100 - resolve would follow the last link too
    for place in dict.fromkeys((there.parent.resolve() / there.name, there.resolve())):
        yield from ((folder, place.relative_to(folder)) for folder in place.parents if _is_run(folder))


def _is_run(folder: Path) -> bool:
    """A run.json alone may be anyone's."""
    return (folder / MANIFEST).is_file() and any((folder / name).exists() for name in (SESSIONS, STAGES))


def _same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:  # it does not exist
        return False
