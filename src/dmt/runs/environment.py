"""Devices, threads and memory, and a record of versions, hardware and git state so that results can be checked."""

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
"""Bytes of freed memory that a process may keep, and size of allocations from which on `free` returns them at once."""

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Parameters of `mallopt`, from malloc.h."""


def pick_device(name: str) -> torch.device:
    """Return a device by name; ``auto`` is CUDA if available, or else the CPU."""
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
    """Return a worker's device name: workers on one machine are assigned to its GPUs in turn.

    Args:
        name: the device that the user asked for; one with an index is returned as it is.
        number: the worker's number on its machine.
    """
    if name in ("auto", "cuda") and torch.cuda.is_available():
        return f"cuda:{number % torch.cuda.device_count()}"
    return name


def pick_execution(name: str, fast: bool | None = None) -> Execution:
    """Return a device and how it runs steps: by default, compiled and recorded as graphs on CUDA, plain elsewhere."""
    device = pick_device(name)
    return Execution(device, fast=device.type == "cuda" if fast is None else fast)


def fitting_threads(shape: tuple[int, int, int]) -> int:
    """Return the number of CPU threads for images of this shape: one for tiny ones, where a second costs time (8×8)."""
    return 1 if shape[1] * shape[2] <= 256 else torch.get_num_threads()


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Context in which torch uses ``count`` CPU threads.

    The number of threads affects the last bits of a sum, so a run keeps the number that it began with.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def keep_freed_memory() -> None:
    """Let the C library keep the memory of freed tensors for the next step.

    By default, large blocks are returned to the system and requested again in every step, which takes a fifth of the
    time of segmentation nets on a CPU. The setting lasts as long as this process and has no effect unless the C library
    is glibc; results do not depend on it.
    """
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for option in (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD):
            library.mallopt(option, KEPT)


def describe(device: torch.device, processes: Processes | None = None) -> dict[str, Any]:
    """Return versions, hardware, git state and command as plain values for the run folder."""
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
    """Return the command line of this process, with the program's name without its folder."""
    return [Path(sys.argv[0]).name, *sys.argv[1:]]


def _git() -> dict[str, Any] | None:
    """Return commit and state of the source tree this code runs from; None if it is not a git checkout."""
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
