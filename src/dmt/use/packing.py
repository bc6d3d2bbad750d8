"""Runs packed into small files, for places that accept only small files, and unpacked again."""

import hashlib
import io
import os
import re
import shutil
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dmt import files, outputs, schemas
from dmt.errors import ConfigError, RunError
from dmt.results import reading
from dmt.run_files import CACHE, LOCK
from dmt.runs.folder import Folder

INDEX = "pack.json"
PART = re.compile(rf"part-\d+|{re.escape(INDEX)}")
UNFINISHED = f"{files.TEMPORARY}pack"
"""A file that exists while parts are written; where it remains, the pack was not completed."""

UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def size(text: str) -> int:
    """Convert a size such as ``12MB`` or ``16MiB`` to bytes."""
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
    unit = text[len(digits) :].strip().upper()
    try:
        number = float(digits) * UNITS[unit]
    except (ValueError, KeyError):
        raise ConfigError(f"a size looks like 12MB or 16MiB, not '{text}'") from None
    if number < 1:
        raise ConfigError(f"a part must hold at least one byte, not {text}")
    return int(number)


@dataclass(frozen=True)
class Packed:
    """Result of packing a run.

    Attributes:
        paths: the parts, followed by the index.
        content: the files that were packed, as paths relative to the run.
        spared: the files that a lean pack leaves out.
    """

    paths: tuple[Path, ...]
    content: tuple[str, ...]
    spared: tuple[str, ...]


def pack(run: Path, out: Path, part_size: int, *, lean: bool = False) -> Packed:
    """Write the run as ``part-001`` … and an index, then read them back. Unpacked, the run can be resumed.

    A run without write permission is packed too, if nothing in it changes meanwhile.
    Finished stages hold no optimizer state. With ``lean``, parameters that the run's own jobs no longer need are left
    out too: those of stages whose followers are all finished, unless they are a result. Such a run can be finished,
    scored and used, but other methods cannot be added to it.
    """
    folder = Folder(run)
    folder.manifest()  # raises for a folder that is no run, before anything is touched
    outputs.require_outside_runs(out)
    if out.exists() and not out.is_dir():
        raise RunError(f"{out} is a file; give --out a new folder")
    _clear(out)
    with _still(folder):
        spared = _spared(folder) if lean else set()
        names = [path for path in _files(run) if path not in spared]
        content = _archive(run, names)
    inside = [path.relative_to(run).as_posix() for path in names]
    parts = [content[start : start + part_size] for start in range(0, len(content), part_size)]
    index: dict[str, Any] = {"run": run.absolute().name, "sha256": hashlib.sha256(content).hexdigest()}
    index |= {"files": inside, "parts": {}}
    written = []
    files.write(out / UNFINISHED, b"")
    for number, part in enumerate(parts, start=1):
        path = out / f"part-{number:03d}"
        files.write(path, part)
        index["parts"][path.name] = hashlib.sha256(part).hexdigest()
        written.append(path)
    files.write_json(out / INDEX, index)
    _whole(out, _index(out))
    (out / UNFINISHED).unlink()
    left = sorted(path.relative_to(run).as_posix() for path in spared)
    return Packed((*written, out / INDEX), tuple(inside), tuple(left))


def _clear(out: Path) -> None:
    """Remove a pack that was not completed; refuse a folder that holds anything else."""
    if not out.exists():
        return
    found = [path for path in out.iterdir() if not path.name.startswith(files.TEMPORARY)]
    left = (out / UNFINISHED).is_file()
    if not all(left and PART.fullmatch(path.name) for path in found):
        raise RunError(f"{out} is not empty; give a new --out")
    for path in out.iterdir():
        if path.name != UNFINISHED:
            path.unlink()


def unpack(packed: Path, out: Path | None = None) -> Path:
    """Restore a packed run in a new folder, by default beside the folder of its parts, under its old name.

    A missing or damaged part is an error that names it, and leaves nothing behind.
    """
    index = _index(packed)
    out = packed.absolute().parent / index["run"] if out is None else out
    outputs.require_outside_runs(out)
    if out.exists():
        raise RunError(f"{out} already exists; give a new --out")
    content = _whole(packed, index)
    place = files.make_folder(out.parent, f".{out.name[:100]}-")
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            archive.extractall(place, filter=_plain)
        place.rename(out)
    except BaseException as error:
        shutil.rmtree(place, ignore_errors=True)
        if isinstance(error, tarfile.TarError | ValueError | EOFError):
            raise RunError(f"{packed} is not a packed dmt run ({error}); pack it again") from error
        raise
    return out


def _whole(packed: Path, index: dict[str, Any]) -> bytes:
    """Return the archive, joined from its parts and verified to be what was packed."""
    content = b"".join(_part(packed / name, digest) for name, digest in index["parts"].items())
    if hashlib.sha256(content).hexdigest() != index["sha256"]:
        raise RunError(f"{packed} is damaged: its parts do not add up to the packed run; pack it again")
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            inside = archive.getnames()
    except (tarfile.TarError, ValueError, EOFError) as error:
        raise RunError(f"{packed} is not a packed dmt run ({error}); pack it again") from error
    if inside != index.get("files", inside):  # packs of 0.2 and before list no files
        raise RunError(f"{packed} is damaged: it does not hold the files that {INDEX} names; pack it again")
    return content


def _plain(member: tarfile.TarInfo, place: str) -> tarfile.TarInfo | None:
    """Filter for extraction: regular files only, none outside the folder, with permissions as the umask sets them."""
    if not member.isfile():
        raise tarfile.ExtractError(f"{member.name!r} is not a regular file")
    found = tarfile.data_filter(member, place)
    return found.replace(mode=None, deep=False)  # type: ignore[arg-type]  # documented: it is not set then


def _index(packed: Path) -> dict[str, Any]:
    if not packed.is_dir():
        raise RunError(f"there is no folder {packed}; give one that dmt pack made")
    index: dict[str, Any] = files.read_json(packed / INDEX, schemas.PACK)
    return index


@contextmanager
def _still(folder: Folder) -> Iterator[None]:
    """Ensure that nobody writes to a run meanwhile: lock it or, without write permission, compare it afterwards."""
    files.require_no_links(folder.path)
    if os.access(folder.path, os.W_OK):
        with folder.locked():
            yield
        return
    before = _stamps(folder.path)
    yield
    if _stamps(folder.path) != before:
        raise RunError(f"{folder.path} changed while it was packed; wait for its training to end, and repeat")


def _stamps(run: Path) -> list[tuple[Path, int, int]]:
    found = [(path, path.stat()) for path in _files(run)]
    return [(path, about.st_size, about.st_mtime_ns) for path, about in found]


def _files(run: Path) -> list[Path]:
    """Return all files of a run in order, except its lock, its cache and temporary files."""
    found = []
    for path in sorted(run.rglob("*")):
        ours = path.name == LOCK or path.name.startswith(files.TEMPORARY) or run / CACHE in (path, *path.parents)
        if ours or path.is_dir():
            continue
        files.require_plain(path)
        found.append(path)
    return found


def _archive(run: Path, names: Sequence[Path]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for path in names:
            about = archive.gettarinfo(path, arcname=path.relative_to(run).as_posix())
            about.type, about.linkname = tarfile.REGTYPE, ""  # tuning hard-links equal files: store each
            about.size = path.stat().st_size
            with path.open("rb") as file:
                archive.addfile(about, file)
    return stream.getvalue()


def _spared(folder: Folder) -> set[Path]:
    """Return the parameter files that neither a later stage nor a user will read."""
    needed: set[str] = set()
    places: set[str] = set()
    for job in folder.jobs():
        result = reading.of_job(folder, folder.manifest(), job)
        by_name = {outline["name"]: outline["place"] for outline in job.stages}
        places |= set(by_name.values())
        needed |= {by_name[name] for name in result.results}
        if job.keep == "best" or result.patience is not None:  # until all rounds are finished, each may be the best
            needed |= {stage.place for stage in (result.kept() if result.finished else result.stages)}
        skipped = {stage.name for stage in result.skipped}
        for outline in job.stages:
            if outline["name"] not in skipped and not folder.finished(outline["place"]):
                labels = outline["labels"] or {}
                parents = {outline["start"], labels.get("by"), *labels.get("also", ())} - {None}
                needed |= {by_name[name] for name in parents} | {outline["place"]}
    return {path for place in places - needed for path in folder.stage(place).glob("step-*/*.safetensors")}


def _part(path: Path, digest: str) -> bytes:
    try:
        files.require_plain(path)
        content = path.read_bytes()
    except OSError as error:
        raise RunError(f"{path} is missing or cannot be read ({error.strerror}); copy it again") from error
    if hashlib.sha256(content).hexdigest() != digest:
        raise RunError(f"{path} is damaged: its checksum differs from the one in {INDEX}; copy it again")
    return content
