"""Room for images: memory, or a file that looks like it."""

from pathlib import Path

import pytest
import torch

from dmt.data import rooms


def test_few_stay_in_memory(tmp_path: Path) -> None:
    file = tmp_path / "room.bin"
    assert rooms.make((2, 3), torch.uint8, file).shape == (2, 3)
    assert rooms.make((2, 3), torch.uint8, None, memory=0).shape == (2, 3)  # nowhere else to go
    assert not file.exists()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16])
def test_many_go_to_a_file_and_come_back(tmp_path: Path, dtype: torch.dtype) -> None:
    file = tmp_path / "deep" / "room.bin"
    room = rooms.make((4, 5), dtype, file, memory=19)
    room[:] = torch.arange(20).view(4, 5)
    again = rooms.reopen((4, 5), dtype, file)
    assert again.dtype == dtype
    assert torch.equal(again, torch.arange(20, dtype=dtype).view(4, 5))
    assert file.stat().st_size == 20 * dtype.itemsize


def test_what_is_reopened_can_be_changed_but_not_the_file(tmp_path: Path) -> None:
    rooms.make((3,), torch.uint8, tmp_path / "room.bin", memory=0)[:] = 7
    again = rooms.reopen((3,), torch.uint8, tmp_path / "room.bin")
    again += 1
    assert (tmp_path / "room.bin").read_bytes() == b"\x07" * 3


def test_who_still_works_on_the_old_file_keeps_it(tmp_path: Path) -> None:
    first = rooms.make((3,), torch.uint8, tmp_path / "room.bin", memory=0)
    first[:] = 7
    rooms.make((3,), torch.uint8, tmp_path / "room.bin", memory=0)[:] = 9
    assert first.tolist() == [7, 7, 7]
    assert rooms.reopen((3,), torch.uint8, tmp_path / "room.bin").tolist() == [9, 9, 9]
