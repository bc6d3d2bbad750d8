"""Images to predict, as files, in folders and in shards; those that cannot be read are skipped."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from torch import Tensor

from dmt.data import ahead
from dmt.data.folders import photo_files, shard_streams, shards, tar_places
from dmt.data.folders.contents import Photo, Source
from dmt.data.folders.photo_files import EXTENSIONS, Leftovers
from dmt.errors import DataError

Result = TypeVar("Result", Tensor, np.ndarray)
Item = TypeVar("Item")

NAMED = 5
"""Number of files that are named if more could not be read."""


@dataclass(frozen=True)
class Inputs:
    """Images to predict: files, and those in shards, which are read one after another and never held all at once.

    Attributes:
        files: image files, those in folders included.
        shards: paths and URLs of tar files.
        folders: the folders that were named.
    """

    files: tuple[Path, ...]
    shards: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()

    @property
    def here(self) -> list[Path]:
        """All input files on this machine, images and shards."""
        return [*self.files, *(Path(each) for each in self.shards if not tar_places.is_url(each))]

    @property
    def single(self) -> bool:
        """Whether there is one image in all, named as a file."""
        return len(self.files) == 1 and not self.shards and not self.folders

    def photos(self, skip: Callable[[str], None]) -> Iterator[Photo]:
        """Yield all images in order; ``skip`` is called with a line about each shard that is damaged or cut short."""
        for path in self.files:
            yield Photo(str(path), path)
        for tar in self.shards:
            yield from (Photo(each.name, each) for each in shard_streams.stream(tar, skip))


class Skipped:
    """Counts the files that cannot be read, and keeps what is wrong with the first of them."""

    def __init__(self) -> None:
        self.count = 0
        self._first: list[str] = []

    def __call__(self, line: str) -> None:
        self.count += 1
        self._first += [line][: NAMED - len(self._first)]

    @property
    def lines(self) -> list[str]:
        """Notes for the end: a line about each of the first files, and how many more there are."""
        more = self.count - len(self._first)
        return [f"skipped: {line}" for line in self._first] + ([f"skipped: {more:,} more"] if more else [])

    def require_none(self) -> None:
        """Raise an error if any file was skipped."""
        if self.count:
            among = "" if self.count == 1 else f"none of {self.count:,} files can be read, the first: "
            raise DataError(f"{among}{self._first[0]}")


def inputs(words: Iterable[str | Path]) -> Inputs:
    """Find what is named: images, folders of images or shards, tar files, URLs of such, names with ``{000..999}``."""
    images, found, folders = list[Path](), list[str](), list[Path]()
    for word in tar_places.expanded(map(str, words)):
        path = Path(word)
        if tar_places.is_url(word) or shards.is_tar(path):
            found.append(word)
            continue
        inside = shards.below(path) if path.is_dir() else []
        folders += [path] if path.is_dir() else []
        found += map(str, inside)
        if not inside or photo_files.find(path, path, Leftovers()):
            images += find([path])
    for each in found:
        if not tar_places.is_url(each) and not Path(each).is_file():
            raise DataError(f"there is no file {each}")
    return Inputs(tuple(images), tuple(found), tuple(folders))


def find(paths: Iterable[Path]) -> list[Path]:
    """Return the images that are named, and those below the folders that are named, in a stable order."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            leftovers = Leftovers()
            inside = list(photo_files.find(path, path, leftovers).values())
            if not inside:
                known = ", ".join(sorted(EXTENSIONS))
                raise DataError(f"no images in {path}; known endings are {known}{leftovers.remedy}")
            found += inside
        elif path.is_file():
            found.append(path)
        else:
            raise DataError(f"there is no file or folder {path}")
    for path in found:
        photo_files.require_utf8(path)
    return found


def decoded(inputs: Inputs, read: Callable[[Source], Result], skipped: Skipped) -> Iterator[tuple[Photo, Result]]:
    """Yield the images that can be read, with what ``read`` returns for them; that none can be is an error."""

    def attempt(photo: Photo) -> tuple[Photo, Result | DataError]:
        try:
            return photo, read(photo.path)
        except DataError as error:
            return photo, error

    done = False
    for photo, found in ahead.results(attempt, inputs.photos(skipped)):
        if isinstance(found, DataError):
            skipped(str(found))
        else:
            done = True
            yield photo, found
    if not done:
        skipped.require_none()


def begun(images: Iterable[Item]) -> Iterator[Item]:
    """Read the first image, so that it is raised here if none can be read."""
    rest = iter(images)
    first = list(itertools.islice(rest, 1))
    return itertools.chain(first, rest)
