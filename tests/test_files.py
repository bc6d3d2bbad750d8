import hashlib
from pathlib import Path

import pytest
import torch

from dmt import files
from dmt.errors import RunError


def test_a_failed_write_leaves_the_old_file_and_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    files.write_json(path, {"n": 1})

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        files.write_json(path, {"n": 2})
    assert files.read_json(path) == {"n": 1}
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]


def test_tensors_survive_and_carry_no_code(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    tensors = {"a": torch.randn(3, 4, 5, 6).to(memory_format=torch.channels_last), "n": torch.tensor(7)}
    files.write_tensors(path, tensors)
    again = files.read_tensors(path)
    assert all(torch.equal(again[name], tensor) for name, tensor in tensors.items())
    assert b"pickle" not in path.read_bytes()


def test_tensors_that_share_memory_are_each_written(tmp_path: Path) -> None:
    path, whole = tmp_path / "t.safetensors", torch.arange(6.0)
    known = files.write_tensors(path, {"a": whole, "b": whole, "part": whole[2:4]})
    assert {name: each.tolist() for name, each in files.read_tensors(path).items()} == {
        "a": whole.tolist(), "b": whole.tolist(), "part": [2.0, 3.0],
    }  # fmt: skip
    apart = {"a": whole.clone(), "b": whole.clone(), "part": whole[2:4].clone()}
    assert files.write_tensors(path, apart) == known


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe"])
def test_damaged_files_are_one_line(content: bytes, tmp_path: Path) -> None:
    for name, read in (("x.json", files.read_json), ("x.safetensors", files.read_tensors)):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(RunError, match="damaged") as caught:
            read(tmp_path / name)
        assert "\n" not in str(caught.value)


def test_missing_files_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="missing"):
        files.read_json(tmp_path / "no.json")
    with pytest.raises(RunError, match="missing"):
        files.read_tensors(tmp_path / "no.safetensors")


@pytest.mark.parametrize("large", [0, 1 << 30])
def test_a_digest_is_that_of_the_file(large: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it is taken beside the writing or after it."""
    monkeypatch.setattr(files, "LARGE", large)
    path = tmp_path / "t.safetensors"
    known = files.write_tensors(path, {"a": torch.arange(10)})
    assert known == hashlib.sha256(path.read_bytes()).hexdigest()
    files.require_digest(path, known, "delete it")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(RunError, match=r"t\.safetensors is damaged.*; delete it"):
        files.require_digest(path, known, "delete it")
    with pytest.raises(RunError, match="missing"):
        files.require_digest(tmp_path / "no", known, "delete it")


def test_a_value_that_changed_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    value = {"score": 91.25, "classes": ["ä", "\udc80"], "none": {}}
    files.write_json(path, value)
    assert files.read_json(path) == value
    written = path.read_text()
    path.write_text(written.replace("\n", ""))  # how it is laid out is nobody's business
    assert files.read_json(path) == value
    path.write_text(written.replace("91.25", "98.25"))
    with pytest.raises(RunError, match=r"a\.json is damaged \(it is not what was written.*take out its 'crc32'"):
        files.read_json(path)
    path.write_text('{"score": 98.25}')  # written by hand, or until 0.2
    assert files.read_json(path) == {"score": 98.25}
