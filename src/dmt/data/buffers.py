"""Buffers for decoded images and pixel labels: in memory if small, otherwise in a memory-mapped file."""

import contextlib
import errno
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

MEMORY = 1 << 28
"""Largest buffer, in bytes, that is kept in memory even if a file is given."""


def make(shape: Sequence[int], dtype: torch.dtype, file: Path | None) -> Tensor:
    """Allocate an uninitialized tensor, backed by ``file`` if it is large and a file is given.

    Raises:
        OSError: if the disk is too full.
    """
    bytes_ = int(np.prod(shape, dtype=np.int64)) * torch.empty(0, dtype=dtype).element_size()
    if file is None or bytes_ <= MEMORY:
        return torch.empty(tuple(shape), dtype=dtype)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)  # a process that still has the old file open keeps its content
    reserve(file, bytes_)
    kind = torch.empty(0, dtype=dtype).numpy().dtype
    return torch.from_numpy(np.memmap(file, dtype=kind, mode="r+", shape=tuple(shape)))


def reserve(file: Path, bytes_: int) -> None:
    """Create a file of this size. A full disk is an error here; writing to the mapped file would crash instead."""
    with file.open("wb") as opened:
        opened.truncate(bytes_)
        if hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(opened.fileno(), 0, bytes_)
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT):  # other errors: a file system without fallocate
                    raise


def reopen(shape: Sequence[int], dtype: torch.dtype, file: Path) -> Tensor:
    """Map an existing buffer for reading: changes stay in memory and never reach the file."""
    kind = torch.empty(0, dtype=dtype).numpy().dtype
    return torch.from_numpy(np.memmap(file, dtype=kind, mode="c", shape=tuple(shape)))


def discard(file: Path | None) -> None:
    """Remove a buffer's file. Processes that have it open keep its content; its space is freed when they end."""
    if file is not None:
        with contextlib.suppress(OSError):  # a file in use that cannot be removed is replaced by the next buffer
            file.unlink(missing_ok=True)


def flush(file: Path) -> None:
    """Force what was written to a buffer to disk."""
    with file.open("rb+") as opened:
        os.fsync(opened.fileno())
