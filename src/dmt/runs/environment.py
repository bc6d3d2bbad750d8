"""Where a run was made: versions, hardware, git state. A number without these cannot be checked."""

import contextlib
import ctypes
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from dmt.core.execution import Execution
from dmt.core.processes import Processes
from dmt.errors import ConfigError
from dmt.version import VERSION

KEPT = 1 << 30
"""Bytes of freed memory that a process keeps, and the size from which on pieces are handed back."""

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Names of malloc.h."""


def pick_device(name: str) -> torch.device:
    """``auto`` takes CUDA where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"unknown device '{name}'; choose auto, cpu, cuda or cuda:N") from None
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"device '{name}' is not supported; choose auto, cpu, cuda or cuda:N")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"device '{name}' does not exist: {torch.cuda.device_count()} CUDA devices; use --device cpu")
    return device


def device_of(name: str, number: int) -> str:
    """The same name, but of several workers on one machine each takes a GPU of its own, as far as there are."""
    if name in ("auto", "cuda") and torch.cuda.is_available():
        return f"cuda:{number % torch.cuda.device_count()}"
    return name


def pick_execution(name: str, fast: bool | None = None) -> Execution:
    """A device by name; steps are compiled and recorded on CUDA, plain elsewhere, unless ``fast`` says otherwise."""
    device = pick_device(name)
    return Execution(device, fast=device.type == "cuda" if fast is None else fast)


def fitting_threads(shape: tuple[int, int, int]) -> int:
    """CPU threads for images of this shape: one if they are tiny, since at 8×8 a second costs more than it brings."""
    return 1 if shape[1] * shape[2] <= 256 else torch.get_num_threads()


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Within, torch uses so many CPU threads. Their number decides the last bits of a sum, so a run keeps its own."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def keep_freed_memory() -> None:
    """Let the C library keep what tensors free for those of the next step.

    Else it hands large pieces back to the system and asks for them again in every step: on a CPU a fifth of the time
    of pixel nets. For this process, from now on, and only where the library is glibc; no number depends on it.
    """
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for option in (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD):
            library.mallopt(option, KEPT)


def describe(device: torch.device, processes: Processes | None = None) -> dict[str, Any]:
    """Plain values for the run folder."""
    hardware: dict[str, Any] = {
        "machine": platform.machine(),
        "system": platform.system(),
        "cores": os.cpu_count(),
    }
    hardware["device"] = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    several = {} if processes is None else {"processes": processes.count}
    return several | {
        "dmt": VERSION,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "numpy": metadata.version("numpy"),
        "hardware": hardware,
        "git": _git(),
        "command": command(),
    }


def command() -> list[str]:
    """What a user typed."""
    return [Path(sys.argv[0]).name, *sys.argv[1:]]


def _git() -> dict[str, Any] | None:
    """The commit of the source tree that runs, if it is a checkout."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None

    def ask(*words: str) -> str:
        return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True).stdout

    try:
        return {
            "commit": ask("rev-parse", "HEAD").strip(),
            "changed": bool(ask("status", "--porcelain").strip()),
        }
    except (OSError, subprocess.CalledProcessError):
        return None
