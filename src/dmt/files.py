"""Atomic writes and checked reads of files. Even after a power failure a file is the old or the new one, never half."""

import functools
import hashlib
import json
import logging
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
"""Prefix of the names of files that are still being written."""

SEAL = "crc32"
"""Key of the last entry of every JSON object that is written: a checksum of the other entries."""

LARGE = 1 << 23
"""Size in bytes from which on a file is hashed in a thread while it is written; below, a thread is not worth it."""


def write(path: Path, content: bytes) -> None:
    """Write to a temporary file beside ``path``, flush it to disk, then rename."""
    with writing(path) as file:
        file.write(content)


@contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to be written in pieces; it appears at ``path`` only if the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{TEMPORARY}{secrets.token_hex(8)}")
    with named(path):
        try:
            # permissions as `open` would set them, by the user's umask
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
    """Make a folder with a unique name, for content that is not complete yet."""
    parent.mkdir(parents=True, exist_ok=True)
    folder = parent / f"{prefix}{secrets.token_hex(8)}"
    folder.mkdir()
    return folder


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Context in which every OSError names the file; one from a full disk would not by itself."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def require_plain(path: Path) -> None:
    """Refuse anything but a regular file: reading a pipe could block, and reading a device might never end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise RunError(f"{path} is not a regular file; put the file itself there")


def require_no_links(folder: Path) -> None:
    """Refuse a run folder that contains a symbolic link: reads and writes could follow it anywhere."""
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(place, name)
            if path.is_symlink():
                raise RunError(f"{path} is a link, and a run holds its files itself; copy it without links: cp -rL")


@functools.cache
def warn_once(message: str, path: Path) -> None:
    """Log a warning in which ``%s`` stands for the path, the first time only, however often a file is read."""
    logging.getLogger(__name__).warning(message, path)


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON, with a checksum if it is an object."""
    write(path, json_bytes(sealed(value) if isinstance(value, Mapping) else value, indent=1) + b"\n")


def sealed(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with a checksum of its entries added, so that even one changed digit is detected."""
    return {**value, SEAL: _checksum(value)}


def require_sealed(value: Any) -> Any:
    """Verify and remove the checksum of a JSON value that was read; files written before 0.2 have none."""
    if not isinstance(value, dict) or SEAL not in value:
        return value
    rest = {key: each for key, each in value.items() if key != SEAL}
    if value[SEAL] != _checksum(rest):
        raise json_checks.Mismatch(f"it is not what was written; if you changed it yourself, take out its '{SEAL}'")
    return rest


def _checksum(value: Mapping[str, Any]) -> str:
    """Compute the checksum of an object's entries, independent of the file's indentation."""
    return f"{zlib.crc32(json_bytes(value)):08x}"


def json_bytes(value: Any, indent: int | None = None) -> bytes:
    """Encode JSON as UTF-8; lone surrogates, as in names of files that are not UTF-8, become reversible escapes."""
    return json.dumps(value, indent=indent, ensure_ascii=False).encode(errors="backslashreplace")


def read_json(path: Path, check: Check = json_checks.anything) -> Any:
    """Read a JSON file that dmt wrote, and verify its checksum and its schema (see `dmt.schemas`)."""
    try:
        require_plain(path)
        content = require_sealed(json.loads(path.read_text(encoding="utf-8")))
        json_checks.require(content, check)
    except FileNotFoundError as error:
        raise RunError(f"{path} is missing; is this a run folder of dmt?") from error
    except (ValueError, RecursionError) as error:  # not JSON or UTF-8, numbers with too many digits, nested too deeply
        raise RunError(f"{path} is damaged ({error}); restore the file or start in a new folder") from error
    return content


def digest(content: bytes) -> str:
    """Return the SHA-256 digest in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def require_digest(path: Path, known: str | None, remedy: str) -> None:
    """Refuse a file whose SHA-256 digest has changed since it was written.

    Args:
        known: the digest when the file was written.
        remedy: what to do about it, for the error message.
    """
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise RunError(f"{path} is missing or cannot be read ({error.strerror}); {remedy}") from error
    if found != known:
        raise RunError(f"{path} is damaged: it is not what was written there; {remedy}")


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> str:
    """Write tensors in the safetensors format, which holds numbers only: loading it cannot execute code.

    Returns:
        The SHA-256 digest of the file.
    """
    content = tensor_bytes(tensors)
    if len(content) < LARGE:
        write(path, content)
        return digest(content)
    with ThreadPoolExecutor(1) as pool:  # hashing releases the GIL, so it overlaps with writing
        hashed = pool.submit(digest, content)
        write(path, content)
    return hashed.result()


def tensor_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """Encode tensors in the safetensors format; those that share memory, such as tied parameters, each get a copy."""
    own: dict[str, Tensor] = {}
    places: set[int] = set()
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().contiguous()
        place = plain.untyped_storage().data_ptr()
        own[name] = plain.clone() if place in places else plain
        places.add(place)
    return save(own)


def require_finite(path: Path, tensors: Mapping[str, Tensor], remedy: str) -> None:
    """Refuse tensors read from a file that contain NaN or infinity: none are ever saved, so the file is damaged."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise RunError(f"{path} is damaged: {name} is not finite; {remedy}")


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Load a safetensors file, even one whose name is not valid UTF-8; errors are those of the library."""
    try:
        str(path).encode()
    except UnicodeEncodeError:  # the library only opens files with names in UTF-8
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
