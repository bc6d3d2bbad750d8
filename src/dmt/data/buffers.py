"""Buffers for decoded images and labels of pixels: in memory while small, else in a file mapped into memory."""

import contextlib
import errno
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

MEMORY = 1 << 28
"""Bytes that are held in memory without asking."""


def make(shape: Sequence[int], dtype: torch.dtype, file: Path | None) -> Tensor:
    """An uninitialized tensor; backed by ``file`` if it is large and a file is given.

    Raises:
        OSError: if the disk is too full for it.
    """
    bytes_ = int(np.prod(shape, dtype=np.int64)) * torch.empty(0, dtype=dtype).element_size()
    if file is None or bytes_ <= MEMORY:
        return torch.empty(tuple(shape), dtype=dtype)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)  # another process may work on what was there: it keeps that, we begin anew
    reserve(file, bytes_)
    kind = torch.empty(0, dtype=dtype).numpy().dtype
    return torch.from_numpy(np.memmap(file, dtype=kind, mode="r+", shape=tuple(shape)))


def reserve(file: Path, bytes_: int) -> None:
    """A new file of this size. A full disk is an error here; later, it would be the end of the process."""
    with file.open("wb") as opened:
        opened.truncate(bytes_)
        if hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(opened.fileno(), 0, bytes_)
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT):  # otherwise it is a disk that cannot tell
                    raise


def reopen(shape: Sequence[int], dtype: torch.dtype, file: Path) -> Tensor:
    """What was made before, for reading: changes would stay in memory."""
    kind = torch.empty(0, dtype=dtype).numpy().dtype
    return torch.from_numpy(np.memmap(file, dtype=kind, mode="c", shape=tuple(shape)))


def discard(file: Path | None) -> None:
    """Remove a buffer's file. Processes that have it open keep its content; the disk space is freed when they end."""
    if file is not None:
        with contextlib.suppress(OSError):  # where a file in use cannot be removed, the next one takes its place
            file.unlink(missing_ok=True)


def flush(file: Path) -> None:
    """Make sure that what was written to a buffer is on the disk."""
    with file.open("rb+") as opened:
        os.fsync(opened.fileno())
