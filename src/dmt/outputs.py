"""Checks before a command overwrites something: only an earlier output of the same kind may be replaced."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dmt.errors import RunError
from dmt.run_files import MANIFEST, PAIRS, SAMPLES, SESSIONS, SKIPPED, SPLITS, STAGES

OURS = frozenset({MANIFEST, SESSIONS, SKIPPED, SPLITS, SAMPLES, STAGES, PAIRS})
"""Names in a run folder that are reserved for training, in addition to all names that begin with a dot."""

HEAD = 4096
"""Number of bytes at the beginning of a file that are searched for the mark of its kind."""


@dataclass(frozen=True)
class Kind:
    """A kind of output file.

    Attributes:
        name: the kind's name in messages.
        mark: bytes near the beginning of every file of this kind; the suffix is the user's choice and no evidence.
    """

    name: str
    mark: bytes

    def is_in(self, path: Path) -> bool:
        """Whether a file is of this kind, or empty, so that overwriting it loses nothing."""
        with path.open("rb") as file:
            head = file.read(HEAD)
        return not head or self.mark in head


def require_file(path: Path, kind: Kind, *, inputs: Iterable[Path] = (), force: bool = False) -> None:
    """Refuse to overwrite a file of another kind, unless ``force``; a run's own files are refused in any case.

    Args:
        path: the file to be written.
        kind: what will be written.
        inputs: files that the command reads.
        force: whether to overwrite other files.
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
    """Refuse to overwrite a file with other content, unless ``force``; one with the same content may be rewritten."""
    require_free(path)
    if not force and path.exists() and not (path.is_file() and path.read_bytes() in (b"", content)):
        raise RunError(f"{path} is there already and differs; give another --out, or --force to replace it")


def require_new(path: Path, *, force: bool = False) -> None:
    """Refuse to overwrite any file, unless ``force``."""
    require_free(path)
    if path.exists() and not force:
        raise RunError(f"{path} is there already; give another --out, or --force to replace it")


def require_free(path: Path) -> None:
    """Refuse a path that is reserved for training in a run folder."""
    for run, inside in _runs_above(path):
        if inside.parts[0] in OURS or inside.parts[0].startswith("."):
            raise RunError(f"{path} belongs to the run in {run}; give another --out")


def require_outside_runs(path: Path) -> None:
    """Refuse a path anywhere inside a run folder: a folder of outputs there would be packed and swept with the run."""
    for run, _ in _runs_above(path):
        raise RunError(f"{path} is inside the run in {run}; give another --out")


def folder_around(path: Path, folders: Iterable[Path]) -> Path | None:
    """Return the first of the folders that is the path or contains it, or None."""
    there = path.resolve()
    return next((folder for folder in folders if there.is_relative_to(folder.resolve())), None)


def _runs_above(path: Path) -> Iterator[tuple[Path, Path]]:
    """Yield (run folder, path relative to it) for each run that contains the path or, if it is a link, its target."""
    there = Path(os.path.abspath(path))  # noqa: PTH100 - resolve would follow the last link too
    for place in dict.fromkeys((there.parent.resolve() / there.name, there.resolve())):
        yield from ((folder, place.relative_to(folder)) for folder in place.parents if _is_run(folder))


def _is_run(folder: Path) -> bool:
    """Whether a folder is a run; a run.json alone could be another program's."""
    return (folder / MANIFEST).is_file() and any((folder / name).exists() for name in (SESSIONS, STAGES))


def _same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:  # it does not exist
        return False
