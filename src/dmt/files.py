"""Atomic writes: a reader, or a machine that lost power, finds the old file or the new one, never half of one."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save
from torch import Tensor

from dmt.errors import RunError

TEMPORARY = ".dmt-tmp-"
"""How the names of files begin that are not complete yet."""


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


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """As safetensors: a format that holds numbers only, so that nothing can run when it is loaded."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write(path, save(plain))


def read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except FileNotFoundError as error:
        raise RunError(f"{path} is missing; restore it from where the run was made") from error
    except Exception as error:  # safetensors raises its own error type, and OSError
        raise RunError(f"{path} is damaged ({error}); delete its stage folder to train that stage again") from error
