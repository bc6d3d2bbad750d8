"""CIFAR-10 as published: a folder of Python or binary batches, or the archive of either.

Archives are read in memory and never unpacked, since a run does not write into data folders.
"""

import hashlib
import io
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from dmt.data import download, safe_pickle
from dmt.errors import DataError

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_SITE = "https://www.cs.toronto.edu/~kriz/"
ADDRESS = _SITE + "cifar-10-python.tar.gz"
ARCHIVE_MD5 = {
    "cifar-10-python.tar.gz": "c58f30108f718f92721af3b95e74349a",
    "cifar-10-binary.tar.gz": "c32a1d4ab5d03f1284b67883e8d87530",
}

_PIXELS = 3 * 32 * 32  # bytes per image: the red plane, then green, then blue, each row by row
_TRAIN = tuple(f"data_batch_{number}" for number in range(1, 6))
_TEST = "test_batch"
_AGAIN = "put the original CIFAR-10 file there"

_Batch = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]  # images (n, 3072), labels (n,)


@dataclass(frozen=True, eq=False)  # comparing tensors with == does not give a bool
class Cifar10:
    """Training and test set in the published order. Images are uint8 (N, 3, 32, 32), labels int64 (N,) in 0..9."""

    train_images: torch.Tensor
    train_labels: torch.Tensor
    test_images: torch.Tensor
    test_labels: torch.Tensor


def read(folder: Path) -> Cifar10:
    """Read CIFAR-10 from `folder`, which holds batches, a folder of batches, or an archive."""
    try:
        source = _find(folder)
        if source is None:
            raise DataError(
                f"no CIFAR-10 in {folder}; put cifar-10-batches-py, cifar-10-batches-bin, "
                f"{' or '.join(ARCHIVE_MD5)} there"
            )
        batches = {name: source.layout.parse(raw, where) for name, raw, where in source.files()}
    except OSError as error:
        raise DataError(
            f"cannot read CIFAR-10 in {folder}: {error.strerror or type(error).__name__}; check the folder"
        ) from error
    return Cifar10(*_joined(batches[name] for name in _TRAIN), *_joined([batches[_TEST]]))


def open_or_download(folder: Path, notify: Callable[[str], None]) -> Cifar10:
    """Read CIFAR-10 from `folder`; if nothing of it is there, download the official archive first."""
    if _holds_nothing(folder):
        archive = folder / "cifar-10-python.tar.gz"
        try:
            download.fetch(ADDRESS, archive, ARCHIVE_MD5[archive.name], notify)
        except DataError as error:
            raise DataError(
                f"no CIFAR-10 in {folder} and it could not be downloaded ({error}); "
                "put cifar-10-batches-py or cifar-10-batches-bin there or give --data DIR"
            ) from error
    return read(folder)


@dataclass(frozen=True)
class _Layout:
    """One of the two published formats: file names, and the parser of a batch."""

    folder: str
    archive: str
    suffix: str
    parse: Callable[[bytes, str], _Batch]

    def files(self) -> dict[str, str]:
        """Return the file name of each batch, mapped to the name of the batch."""
        return {name + self.suffix: name for name in (*_TRAIN, _TEST)}


@dataclass(frozen=True)
class _Folder:
    path: Path
    layout: _Layout

    def files(self) -> Iterator[tuple[str, bytes, str]]:
        """Yield the name and content of each batch and, for error messages, its path."""
        for file, name in self.layout.files().items():
            path = self.path / file
            if not path.exists():
                raise DataError(f"{path} is missing; {_AGAIN}")
            yield name, path.read_bytes(), str(path)


@dataclass(frozen=True)
class _Archive:
    path: Path
    layout: _Layout

    def files(self) -> Iterator[tuple[str, bytes, str]]:
        """Yield the same in the order of the archive, which is decompressed once, without seeking back."""
        remedy = f"delete it and download it again ({_SITE}{self.path.name})"
        missing = {f"{self.layout.folder}/{file}": name for file, name in self.layout.files().items()}
        with self.path.open("rb") as stream:
            found = hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
            if found != (expected := ARCHIVE_MD5[self.path.name]):
                raise DataError(f"{self.path} is damaged: its MD5 is {found}, not {expected}; {remedy}")
            stream.seek(0)
            try:
                with tarfile.open(fileobj=stream, mode="r|gz") as archive:
                    for member in archive:
                        if member.name in missing and (content := archive.extractfile(member)):
                            yield missing.pop(member.name), content.read(), f"{self.path}: {member.name}"
            except (tarfile.TarError, EOFError, zlib.error) as error:
                raise DataError(f"{self.path} is damaged ({type(error).__name__}); {remedy}") from error
        if missing:
            raise DataError(f"{self.path} lacks {min(missing)}; {remedy}")


def _find(folder: Path) -> _Folder | _Archive | None:
    """Find the data in `folder`. The first match is used, even if it turns out to be incomplete."""
    if folder.is_file():
        raise DataError(f"{folder} is a file; give the folder that holds it")
    for layout in _LAYOUTS:
        if any((folder / file).exists() for file in layout.files()):
            return _Folder(folder, layout)
    for layout in _LAYOUTS:
        if (folder / layout.folder).is_dir():
            return _Folder(folder / layout.folder, layout)
    for layout in _LAYOUTS:
        if (folder / layout.archive).is_file():
            return _Archive(folder / layout.archive, layout)
    return None


def _holds_nothing(folder: Path) -> bool:
    try:
        return _find(folder) is None
    except OSError:  # a folder without read permission: reading it will report that
        return False


def _python_batch(raw: bytes, where: str) -> _Batch:
    """Parse a pickled dict of Python 2 with b"data", an array (n, 3072), and b"labels", a list of n ints."""
    content = safe_pickle.load(io.BytesIO(raw), where)
    if not isinstance(content, dict) or not {b"data", b"labels"} <= content.keys():
        raise DataError(f"{where} holds no 'data' and 'labels'; {_AGAIN}")
    data, labels = content[b"data"], content[b"labels"]
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (_PIXELS,):
        raise DataError(f"{where}: 'data' is not an array of uint8 of shape (n, {_PIXELS}); {_AGAIN}")
    if not len(data):
        raise DataError(f"{where} holds no images; {_AGAIN}")
    if not isinstance(labels, list) or len(labels) != len(data):
        raise DataError(f"{where}: 'labels' is not a list of {len(data)} labels, one per image; {_AGAIN}")
    if not all(type(label) is int and 0 <= label < len(CLASSES) for label in labels):
        raise DataError(f"{where} has a label outside 0..9; {_AGAIN}")
    return np.asarray(data), np.array(labels, dtype=np.int64)


def _binary_batch(raw: bytes, where: str) -> _Batch:
    """Parse records of one label byte and 3072 image bytes, without a header."""
    if not raw or len(raw) % (1 + _PIXELS):
        raise DataError(f"{where} has {len(raw)} bytes, not a positive multiple of {1 + _PIXELS}; {_AGAIN}")
    records = np.frombuffer(raw, dtype=np.uint8).reshape(-1, 1 + _PIXELS)
    if (records[:, 0] >= len(CLASSES)).any():
        raise DataError(f"{where} has a label outside 0..9; {_AGAIN}")
    return records[:, 1:], records[:, 0].astype(np.int64)


def _joined(batches: Iterable[_Batch]) -> tuple[torch.Tensor, torch.Tensor]:
    """Concatenate batches to images (N, 3, 32, 32) and labels (N,), copying the data."""
    images, labels = zip(*batches, strict=True)
    return (
        torch.from_numpy(np.concatenate(images).reshape(-1, 3, 32, 32)),
        torch.from_numpy(np.concatenate(labels)),
    )


_LAYOUTS = (
    _Layout("cifar-10-batches-py", "cifar-10-python.tar.gz", "", _python_batch),
    _Layout("cifar-10-batches-bin", "cifar-10-binary.tar.gz", ".bin", _binary_batch),
)
