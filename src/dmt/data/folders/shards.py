"""Random access to images in tar files, as used by WebDataset. Nothing is unpacked."""

import hashlib
import tarfile
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from dmt.data import kept_arrays
from dmt.data.folders import photo_files, tar_places
from dmt.data.folders.contents import Photo
from dmt.data.folders.photo_files import EXTENSIONS, Leftovers, shown
from dmt.data.kept_arrays import Arrays
from dmt.data.texts import Texts
from dmt.errors import DataError

ENDING = ".tar"
KEPT = "shards-{}.safetensors"
COLUMNS = ("places", "offsets", "sizes", "copies")

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Member:
    """An image in a tar file: a range of its bytes.

    Attributes:
        tar: the path or URL of the tar file.
        name: name of the image within it.
        offset, size: the range of bytes.
    """

    tar: str
    name: str
    offset: int
    size: int

    def read(self) -> bytes:
        found = tar_places.read(self.tar, self.offset, self.size)
        if len(found) < self.size:
            raise OSError("truncated")
        if len(found) > self.size:
            raise OSError("the server does not support range requests: it sent more than was requested")
        return found

    def __str__(self) -> str:
        return f"{self.tar}/{self.name}"


@dataclass(frozen=True)
class Shards(Sequence[Photo]):
    """An index of all images in some tar files, in their order. Only a name and four numbers are kept per image.

    Attributes:
        tars: paths or URLs.
        prefixes: for each tar file, the prefix of its images' ids.
        names: names of the images within their tar files.
        places: (N,) index of the tar file of each image.
        offsets, sizes: (N,) range of its bytes.
        copies: (N,) 1, or n for the n-th image of the same name in one tar file.
        seal: hash that changes if a tar file does.
        notes: one line about each tar file that is damaged.
    """

    tars: tuple[str, ...]
    prefixes: tuple[str, ...]
    names: Texts
    places: Numbers
    offsets: Numbers
    sizes: Numbers
    copies: npt.NDArray[np.int32]
    seal: str
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, place: int) -> Photo: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Photo, ...]: ...

    def __getitem__(self, place: int | slice) -> Photo | tuple[Photo, ...]:
        if isinstance(place, slice):
            return tuple(self[each] for each in range(*place.indices(len(self))))
        name, tar, copy = self.names[place], int(self.places[place]), int(self.copies[place])
        member = Member(self.tars[tar], name, int(self.offsets[place]), int(self.sizes[place]))
        return Photo(f"{self.prefixes[tar]}/{name}" + (f"#{copy}" if copy > 1 else ""), member)

    def every(self, step: int) -> "Shards":
        """Return every ``step``-th image, starting with the first."""
        names = self.names.take(np.arange(0, len(self), step))
        columns: dict[str, Any] = {name: getattr(self, name)[::step] for name in COLUMNS}
        return replace(self, names=names, **columns)


def is_tar(path: Path) -> bool:
    """Return whether a file is a tar file, compressed or not, by its name."""
    return path.name.lower().endswith((ENDING, ".tar.gz", ".tgz")) and not path.is_dir()


def below(folder: Path, leftovers: Leftovers | None = None) -> list[Path]:
    """Find tar files anywhere below a folder, sorted; as for images, hidden folders and those of runs are left out.

    Args:
        folder: where to search.
        leftovers: files other than images that were already found there. If it has no tar files, the search is
            skipped; those found are taken off its count.
    """
    if leftovers is not None and not leftovers.endings[ENDING]:
        return []
    found = sorted(each for each in photo_files.ending_in(folder, (ENDING,)) if each.is_file())
    if leftovers is not None:
        leftovers.endings[ENDING] -= len(found)
    return found


def index(tars: Sequence[str], prefixes: Sequence[str], cache: Path | None = None) -> Shards:
    """Index all images of tar files by reading the headers, not the images.

    Args:
        tars: paths or URLs.
        prefixes: for each tar file, the prefix of its images' ids.
        cache: folder for the index, which is reused while the tar files are unchanged.
    """
    seal = hashlib.sha256("\n".join(map(tar_places.stamp, tars)).encode()).hexdigest()
    file = None if cache is None else cache / KEPT.format(seal[:16])
    found = None if file is None else _kept(file, tuple(tars), tuple(prefixes), seal)
    if found is None:
        found = _read(tuple(tars), tuple(prefixes), seal)
        if file is not None:
            _keep(file, found)
    if not len(found):
        raise DataError(f"there are no images in {shown(tars[0])}{' and the other shards' * (len(tars) > 1)}")
    return found


@lru_cache(maxsize=1)  # a run opens its folder a few times
def _read(tars: tuple[str, ...], prefixes: tuple[str, ...], seal: str) -> Shards:
    names, ends, numbers, marks = bytearray(), array("q"), array("q"), bytearray()
    notes: list[str] = []
    for place, tar in enumerate(tars):
        for name, offset, size in _members(tar, notes):
            told = _utf8(name, tar)
            names += told
            ends.append(len(names))
            numbers.extend((place, offset, size))
            marks += hashlib.blake2b(told, digest_size=8, key=place.to_bytes(8, "little")).digest()
    columns = np.array(numbers, np.int64).reshape(-1, 3)
    return Shards(
        tars,
        prefixes,
        Texts(np.frombuffer(bytes(names), np.uint8), np.array(ends, np.int64)),
        places=np.ascontiguousarray(columns[:, 0]),
        offsets=np.ascontiguousarray(columns[:, 1]),
        sizes=np.ascontiguousarray(columns[:, 2]),
        copies=_copies(np.frombuffer(bytes(marks), np.uint64)),
        seal=seal,
        notes=tuple(notes),
    )


def _members(tar: str, notes: list[str]) -> Iterator[tuple[str, int, int]]:
    """Yield (name, offset, size) of each image in a tar file."""
    if not tar_places.sends_parts(tar):
        raise DataError(
            f"the server of {shown(tar)} sends whole files only, and images are read one by one; "
            f"copy the shards to this machine"
        )
    with tar_places.opened(tar) as file, tar_places.reached(tar):
        try:
            archive = tarfile.open(fileobj=file, mode="r:")  # noqa: SIM115 - only the file needs closing
        except tarfile.ReadError as error:
            raise DataError(f"{shown(tar)} is not a tar file, or a compressed one; give plain tar files") from error
        try:
            for each in archive:
                if each.isreg() and is_image(each.name):
                    yield each.name, each.offset_data, each.size
                archive.members = []  # type: ignore[attr-defined]  # tarfile would keep all of them in memory
            file.seek(archive.offset)
            whole = not any(file.read(tarfile.BLOCKSIZE))
        except tarfile.ReadError:
            whole = False
        if not whole:
            notes.append(f"{shown(tar)} is damaged or its end is missing: what follows is lost; put the original there")


def _utf8(name: str, tar: str) -> bytes:
    try:
        return name.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"the name of {shown(name)} in {shown(tar)} is not UTF-8 text; rename it") from error


def _copies(marks: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
    """Number the images of equal name, (N,): 1 for the first, 2 for the second, …

    Args:
        marks: (N,) hashes of the tar file and name of each image.
    """
    order = np.argsort(marks, kind="stable")
    fresh = np.r_[True, marks[order][1:] != marks[order][:-1]][: len(order)]
    starts = np.maximum.accumulate(np.where(fresh, np.arange(len(order)), 0))
    copies = np.empty(len(order), np.int32)
    copies[order] = np.arange(len(order)) - starts + 1
    return copies


def is_image(name: str) -> bool:
    """Return whether the member of a tar file is an image, by its name."""
    last = name.rpartition("/")[2]
    return "." in last and f".{last.rpartition('.')[2].lower()}" in EXTENSIONS and not photo_files.hidden(last)


def _kept(file: Path, tars: tuple[str, ...], prefixes: tuple[str, ...], seal: str) -> Shards | None:
    """Load a cached index; None if there is none."""
    known = kept_arrays.load(file, seal)
    if known is None:
        return None
    held, notes = known
    columns: dict[str, Any] = {name: held[name] for name in COLUMNS}
    return Shards(tars, prefixes, Texts(held["names"], held["ends"]), **columns, seal=seal, notes=notes)


def _keep(file: Path, found: Shards) -> None:
    arrays: Arrays = {"names": found.names.buffer, "ends": found.names.ends}
    kept_arrays.save(file, found.seal, arrays | {name: getattr(found, name) for name in COLUMNS}, found.notes)
