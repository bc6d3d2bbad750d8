"""Buffers for images: memory, or a file that looks like it."""

import errno
import os
from pathlib import Path

import pytest
import torch

from dmt.data import buffers


@pytest.fixture
def cramped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers, "MEMORY", 2)


def test_few_stay_in_memory(tmp_path: Path) -> None:
    file = tmp_path / "buffer.bin"
    assert buffers.make((2, 3), torch.uint8, file).shape == (2, 3)
    assert not file.exists()


def test_without_a_file_many_stay_in_memory_too(cramped: None) -> None:
    assert buffers.make((2, 3), torch.uint8, None).shape == (2, 3)


def test_a_full_disk_is_an_error_at_once(cramped: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, begin: int, size: int) -> None:
        assert (begin, size) == (0, 40)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(OSError, match="No space left"):
        buffers.make((4, 5), torch.int16, tmp_path / "buffer.bin")


@pytest.mark.parametrize("disk", ["can", "cannot", "does not know"])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16])
def test_many_go_to_a_file_and_come_back(
    cramped: None, tmp_path: Path, dtype: torch.dtype, disk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot(*_: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    if disk == "cannot":
        monkeypatch.setattr(os, "posix_fallocate", cannot, raising=False)
    elif disk == "does not know":
        monkeypatch.delattr(os, "posix_fallocate", raising=False)
    file = tmp_path / "deep" / "buffer.bin"
    buffer = buffers.make((4, 5), dtype, file)
    buffer[:] = torch.arange(20).view(4, 5)
    again = buffers.reopen((4, 5), dtype, file)
    assert again.dtype == dtype
    assert torch.equal(again, torch.arange(20, dtype=dtype).view(4, 5))
    assert file.stat().st_size == 20 * dtype.itemsize


def test_what_is_reopened_can_be_changed_but_not_the_file(cramped: None, tmp_path: Path) -> None:
    buffers.make((3,), torch.uint8, tmp_path / "buffer.bin")[:] = 7
    again = buffers.reopen((3,), torch.uint8, tmp_path / "buffer.bin")
    again += 1
    assert (tmp_path / "buffer.bin").read_bytes() == b"\x07" * 3


def test_who_still_works_on_the_old_file_keeps_it(cramped: None, tmp_path: Path) -> None:
    first = buffers.make((3,), torch.uint8, tmp_path / "buffer.bin")
    first[:] = 7
    buffers.make((3,), torch.uint8, tmp_path / "buffer.bin")[:] = 9
    assert first.tolist() == [7, 7, 7]
    assert buffers.reopen((3,), torch.uint8, tmp_path / "buffer.bin").tolist() == [9, 9, 9]
