"""A run as a set of small files, to carry where only small files go; and back."""

import hashlib
import io
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from dmt import files, outputs
from dmt.errors import ConfigError, RunError
from dmt.results import reading
from dmt.run_files import CACHE, LOCK
from dmt.runs.folder import Folder

INDEX = "pack.json"
UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def size(text: str) -> int:
    """``12MB`` or ``16MiB`` to bytes."""
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
    unit = text[len(digits) :].strip().upper()
    try:
        number = float(digits) * UNITS[unit]
    except (ValueError, KeyError):
        raise ConfigError(f"a size looks like 12MB or 16MiB, not '{text}'") from None
    if number < 1:
        raise ConfigError(f"a part must hold at least one byte, not {text}")
    return int(number)


def pack(run: Path, out: Path, part_size: int, *, lean: bool = False) -> list[Path]:
    """Write the run as ``part-001`` … and an index; resumable where it is unpacked.

    Finished stages hold no momentum. With ``lean``, parameters that the run's own jobs need no more are left out too:
    those of stages all of whose followers are finished, unless they are a result. Such a run can be finished, scored
    and used, but not grow by other methods.
    """
    folder = Folder(run)
    folder.manifest()  # what is no run is refused, and not touched
    outputs.require_outside_runs(out)
    if out.exists() and not out.is_dir():
        raise RunError(f"{out} is a file; give --out a new folder")
    if out.exists() and any(out.iterdir()):
        raise RunError(f"{out} is not empty; give a new --out")
    with folder.locked():
        spared = _spared(folder) if lean else set()
        content = _archive(run, spared)
    parts = [content[start : start + part_size] for start in range(0, len(content), part_size)]
    index: dict[str, Any] = {"run": run.absolute().name, "sha256": hashlib.sha256(content).hexdigest(), "parts": {}}
    written = []
    for number, part in enumerate(parts, start=1):
        path = out / f"part-{number:03d}"
        files.write(path, part)
        index["parts"][path.name] = hashlib.sha256(part).hexdigest()
        written.append(path)
    files.write_json(out / INDEX, index)
    return [*written, out / INDEX]


def unpack(packed: Path, out: Path | None = None) -> Path:
    """Put a packed run together in a new folder, beside the parts under its old name if no other is given.

    A missing or damaged part is named, and nothing is left behind.
    """
    index = _index(packed)
    out = packed.absolute().parent / index["run"] if out is None else out
    outputs.require_outside_runs(out)
    if out.exists():
        raise RunError(f"{out} already exists; give a new --out")
    content = b"".join(_part(packed / name, digest) for name, digest in index["parts"].items())
    if hashlib.sha256(content).hexdigest() != index["sha256"]:
        raise RunError(f"{packed} is damaged: its parts do not add up to the packed run; pack it again")
    out.parent.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}-"))
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            archive.extractall(place, filter="data")  # no links, no paths that lead out
        place.chmod(0o755)
        place.rename(out)
    except BaseException as error:
        shutil.rmtree(place, ignore_errors=True)
        if isinstance(error, tarfile.TarError):
            raise RunError(f"{packed} is not a packed dmt run ({error})") from error
        raise
    return out


def _index(packed: Path) -> dict[str, Any]:
    index = files.read_json(packed / INDEX)
    good = isinstance(index, dict) and {"run", "sha256", "parts"} <= set(index) and isinstance(index["parts"], dict)
    # names only: a path could lead out of the folder
    if not good or any(name != Path(name).name or name in ("", ".", "..") for name in (index["run"], *index["parts"])):
        raise RunError(f"{packed / INDEX} is damaged: it does not describe a packed run")
    return index  # type: ignore[no-any-return]


def _archive(run: Path, spared: set[Path]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for path in sorted(run.rglob("*")):
            ours = path.name == LOCK or path.name.startswith(files.TEMPORARY) or run / CACHE in path.parents
            if path.is_file() and not ours and path not in spared:
                archive.add(path, arcname=str(path.relative_to(run)))
    return stream.getvalue()


def _spared(folder: Folder) -> set[Path]:
    """Parameter files that neither a later stage nor a user will read."""
    needed: set[str] = set()
    places: set[str] = set()
    for job in folder.jobs():
        result = reading.of_job(folder, folder.manifest(), job)
        by_name = {outline["name"]: outline["place"] for outline in job.stages}
        places |= set(by_name.values())
        needed |= {by_name[name] for name in result.results}
        if job.keep == "best" or result.patience is not None:  # until all rounds are there, any may be it
            needed |= {stage.place for stage in (result.kept() if result.finished else result.stages)}
        skipped = {stage.name for stage in result.skipped}
        for outline in job.stages:
            if outline["name"] not in skipped and not folder.finished(outline["place"]):
                parents = {outline["start"], (outline["labels"] or {}).get("by")} - {None}
                needed |= {by_name[name] for name in parents} | {outline["place"]}
    return {path for place in places - needed for path in folder.stage(place).glob("step-*/*.safetensors")}


def _part(path: Path, digest: str) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RunError(f"{path} is missing or cannot be read ({error.strerror}); copy it again") from error
    if hashlib.sha256(content).hexdigest() != digest:
        raise RunError(f"{path} is damaged: its checksum differs from the one in {INDEX}; copy it again")
    return content
