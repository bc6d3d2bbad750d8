"""Atomic writes: a reader, or a machine that lost power, finds the old file or the new one, never half of one."""

import hashlib
import json
import os
import secrets
import stat
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import torch
from safetensors.torch import load, load_file, save
from torch import Tensor

from dmt import json_checks
from dmt.errors import RunError
from dmt.json_checks import Check

TEMPORARY = ".dmt-tmp-"
"""How the names of files begin that are not complete yet."""

SEAL = "crc32"
"""The last entry of every JSON object that is written: a checksum of the others."""

LARGE = 1 << 23
"""Bytes from which on a file is hashed while the disk is busy with it; for fewer a thread is not worth it."""


def write(path: Path, content: bytes) -> None:
    """Write to a temporary file beside ``path``, flush it to disk, then rename."""
    with writing(path) as file:
        file.write(content)


@contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """The same for what is written piece by piece: the file is there when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{TEMPORARY}{secrets.token_hex(8)}")
    with named(path):
        try:
            # as `open` would make it: who may read it is the user's umask to say
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def make_folder(parent: Path, prefix: str) -> Path:
    """A new folder of a name that nobody has, for what is not complete yet."""
    parent.mkdir(parents=True, exist_ok=True)
    folder = parent / f"{prefix}{secrets.token_hex(8)}"
    folder.mkdir()
    return folder


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Within, errors of the system say which file was to be written; a full disk alone does not."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def require_plain(path: Path) -> None:
    """Refuse what is there but no regular file: a pipe would be waited for, a device might never end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise RunError(f"{path} is not a regular file; put the file itself there")


def require_no_links(folder: Path) -> None:
    """Refuse a folder of ours in which something is a link: it could lead anywhere, for reading and for writing."""
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(place, name)
            if path.is_symlink():
                raise RunError(f"{path} is a link, and a run holds its files itself; copy it without links: cp -rL")


def write_json(path: Path, value: Any) -> None:
    """With a checksum, if it is an object."""
    write(path, json_bytes(sealed(value) if isinstance(value, Mapping) else value, indent=1) + b"\n")


def sealed(value: Mapping[str, Any]) -> dict[str, Any]:
    """With a checksum of its entries, so that a digit that changed is noticed."""
    return {**value, SEAL: _checksum(value)}


def require_sealed(value: Any) -> Any:
    """A JSON value that was read, without its checksum, which must be right; until 0.2 there was none."""
    if not isinstance(value, dict) or SEAL not in value:
        return value
    rest = {key: each for key, each in value.items() if key != SEAL}
    if value[SEAL] != _checksum(rest):
        raise json_checks.Mismatch(f"it is not what was written; if you changed it yourself, take out its '{SEAL}'")
    return rest


def _checksum(value: Mapping[str, Any]) -> str:
    """Of the values, however they are indented."""
    return f"{zlib.crc32(json_bytes(value)):08x}"


def json_bytes(value: Any, indent: int | None = None) -> bytes:
    """As UTF-8. What is no character, in the name of a file say, is an escape, and comes back as it was."""
    return json.dumps(value, indent=indent, ensure_ascii=False).encode(errors="backslashreplace")


def read_json(path: Path, check: Check = json_checks.anything) -> Any:
    """The content of a file of ours, if it is as it must be (`dmt.schemas`)."""
    try:
        require_plain(path)
        content = require_sealed(json.loads(path.read_text(encoding="utf-8")))
        json_checks.require(content, check)
    except FileNotFoundError as error:
        raise RunError(f"{path} is missing; is this a run folder of dmt?") from error
    except (ValueError, RecursionError) as error:  # no JSON, no UTF-8, numbers too long, nested too deeply
        raise RunError(f"{path} is damaged ({error}); restore the file or start in a new folder") from error
    return content


def digest(content: bytes) -> str:
    """SHA-256."""
    return hashlib.sha256(content).hexdigest()


def require_digest(path: Path, known: str | None, remedy: str) -> None:
    """Refuse a file whose SHA-256 is another one than when it was written.

    Args:
        remedy: what to do, for people.
    """
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise RunError(f"{path} is missing or cannot be read ({error.strerror}); {remedy}") from error
    if found != known:
        raise RunError(f"{path} is damaged: it is not what was written there; {remedy}")


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> str:
    """As safetensors: a format that holds numbers only, so that nothing can run when it is loaded.

    Returns:
        The digest of the bytes that were written.
    """
    content = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
    if len(content) < LARGE:
        write(path, content)
        return digest(content)
    with ThreadPoolExecutor(1) as pool:  # hashing leaves the interpreter alone: it costs what the disk does not take
        hashed = pool.submit(digest, content)
        write(path, content)
    return hashed.result()


def require_finite(path: Path, tensors: Mapping[str, Tensor], remedy: str) -> None:
    """Refuse numbers that were read from a file if some are NaN or infinite: nothing that is saved ever is."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise RunError(f"{path} is damaged: {name} is not finite; {remedy}")


def load_tensors(path: Path) -> dict[str, Tensor]:
    """From a safetensors file of whatever name, by the errors of that library."""
    try:
        str(path).encode()
    except UnicodeEncodeError:  # the library opens names in UTF-8 only
        return load(path.read_bytes())
    return load_file(path)


def read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        require_plain(path)
        return load_tensors(path)
    except RunError:
        raise
    except FileNotFoundError as error:
        raise RunError(f"{path} is missing; restore it from where the run was made") from error
    except Exception as error:  # safetensors raises its own error type, and OSError
        raise RunError(f"{path} is damaged ({error}); delete its stage folder to train that stage again") from error
