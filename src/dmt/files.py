"""Atomic writes: a reader, or a machine that lost power, finds the old file or the new one, never half of one."""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save
from torch import Tensor

from dmt.errors import RunError

TEMPORARY = ".dmt-tmp-"
"""How the names of files begin that are not complete yet."""

LARGE = 1 << 23
"""Bytes from which on a file is hashed while the disk is busy with it; for fewer a thread is not worth it."""


def write(path: Path, content: bytes) -> None:
    """Write to a temporary file beside ``path``, flush it to disk, then rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=TEMPORARY)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any) -> None:
    write(path, (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RunError(f"{path} is missing; is this a run folder of dmt?") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise RunError(f"{path} is damaged ({error}); restore the file or start in a new folder") from error


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


def read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except FileNotFoundError as error:
        raise RunError(f"{path} is missing; restore it from where the run was made") from error
    except Exception as error:  # safetensors raises its own error type, and OSError
        raise RunError(f"{path} is damaged ({error}); delete its stage folder to train that stage again") from error
