"""A user's unlabeled images, some in shards: find them, and read them as squares without keeping them in memory."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import overload
from urllib.parse import urlsplit

import numpy as np
from PIL import Image, ImageOps

from dmt.data import ahead, kept_arrays
from dmt.data.folders import photo_files, shards, tar_places
from dmt.data.folders.contents import FolderContents, Photo
from dmt.data.folders.shards import Shards
from dmt.data.sets import UnlabeledSet
from dmt.data.squares import Squares
from dmt.data.texts import Derived
from dmt.errors import DataError
from dmt.types import ProgressCallback

NOTHING_UNLABELED = "there are no unlabeled images: nothing to learn from besides the labels"
DIGEST = 16
"""Bytes of an image's digest."""

LOOKED_AT = 100_000
"""Greatest number of images in shards that are checked for problems."""

TOLD = 1000
"""Greatest number of unreadable images whose reasons are kept."""


@dataclass(frozen=True)
class Pool(Sequence[Photo]):
    """Unlabeled images: single files first, then those in shards.

    Attributes:
        photos: images that are files.
        tars: shards that were found next to them.
        shards: the index of all shards, once they are opened.
    """

    photos: tuple[Photo, ...]
    tars: tuple[Path, ...]
    shards: Shards | None = None

    def __len__(self) -> int:
        return len(self.photos) + (0 if self.shards is None else len(self.shards))

    @overload
    def __getitem__(self, place: int) -> Photo: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Photo, ...]: ...

    def __getitem__(self, place: int | slice) -> Photo | tuple[Photo, ...]:
        if isinstance(place, slice):
            return tuple(self[each] for each in range(*place.indices(len(self))))
        place = range(len(self))[place]
        if place < len(self.photos) or self.shards is None:
            return self.photos[place]
        return self.shards[place - len(self.photos)]


def opened(contents: FolderContents, urls: Sequence[str] = (), cache: Path | None = None) -> FolderContents:
    """Add the images in a folder's shards, and in further shards, to its unlabeled images.

    Args:
        contents: the folder.
        urls: further shards: files, URLs, names with ``{000..999}``.
        cache: folder for the index of the shards.
    """
    here = contents.unlabeled
    pool = here if isinstance(here, Pool) else Pool(tuple(here), ())
    elsewhere = tar_places.expanded(urls)
    if not pool.tars and not elsewhere:
        return contents
    inside = [each.relative_to(contents.root).as_posix() for each in pool.tars]
    found = shards.index([*map(str, pool.tars), *elsewhere], [*inside, *_names(elsewhere)], cache)
    notes = [each for each in contents.notes if each != NOTHING_UNLABELED]
    count = f"{len(found):,} unlabeled images in {len(found.tars):,} shard{'s' * (len(found.tars) > 1)}"
    return replace(contents, unlabeled=replace(pool, shards=found), notes=(*notes, count, *found.notes))


def _names(places: Sequence[str]) -> list[str]:
    """Return id prefixes for shards outside of the folder: file names if these differ, otherwise paths.

    So ids stay the same if all shards are moved together.
    """
    paths = [urlsplit(each).path if tar_places.is_url(each) else each for each in places]
    short = [each.rpartition("/")[2] for each in paths]
    return short if len({*short}) == len(short) else [each.lstrip("/") for each in paths]


def thinned(contents: FolderContents) -> FolderContents:
    """Return the folder with only every n-th image in shards, if it has too many unlabeled images to check all."""
    pool = contents.unlabeled
    if not isinstance(pool, Pool) or pool.shards is None or len(pool) <= LOOKED_AT:
        return contents
    step = -(-len(pool.shards) // LOOKED_AT)
    note = f"of {len(pool):,} unlabeled images, one of every {step:,} in shards was checked"
    some = replace(pool, shards=pool.shards.every(step))
    return replace(contents, unlabeled=some, notes=(*contents.notes, note))


def square(image: Image.Image, size: int) -> Image.Image:
    """Crop the central square of an image and resize it to this size, antialiased."""
    return ImageOps.fit(image, (size, size), Image.Resampling.BILINEAR)


def read_square(photo: Photo, size: int) -> np.ndarray:
    """Read a photo as a square, (3, size, size) uint8."""
    whole = Image.fromarray(photo_files.read_photo(photo.path))
    return np.ascontiguousarray(np.asarray(square(whole, size)).transpose(2, 0, 1))


def digest(image: np.ndarray) -> bytes:
    """Hash the pixels of an image."""
    return hashlib.sha256(image.tobytes()).digest()[:DIGEST]


def unchanged(photos: Iterable[Photo], how: str) -> str:
    """Return a hash of the names, sizes and modification times of image files, and of how they are read.

    An image in a shard counts with the size and time of its tar file. Files that are missing, and URLs, are left out.

    Args:
        photos: the images.
        how: describes how they are read.
    """
    digest = hashlib.sha256(how.encode())
    for photo in photos:
        try:
            about = (photo.path if isinstance(photo.path, Path) else Path(photo.path.tar)).stat()
        except OSError:
            continue  # a missing file is reported when it is read
        digest.update(f"{photo.id}\0{about.st_size}\0{about.st_mtime_ns}\n".encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class Checked:
    """The result of reading every image of a pool once.

    Attributes:
        digests: (N, 16) uint8.
        good: (N,) bool, false for images that cannot be read.
        skipped: messages about the first of these, and how many more there are.
    """

    digests: np.ndarray
    good: np.ndarray
    skipped: tuple[str, ...]


def squares(
    pool: Pool, size: int, cache: Path | None, on_progress: ProgressCallback
) -> tuple[UnlabeledSet[Squares], tuple[str, ...]]:
    """Return the readable images of a pool, each read on access, and messages about the unreadable ones.

    To know which are readable, every image is read once; the result is kept in ``cache``.
    """
    assert pool.shards is not None
    seal = unchanged(pool.photos, f"{size} {pool.shards.seal}")
    file = None if cache is None else cache / f"pool-{seal[:16]}.safetensors"
    kept = None if file is None else kept_arrays.load(file, seal)
    if kept is not None:
        known = Checked(kept[0]["digests"], kept[0]["good"], kept[1])
    else:
        known = _check(pool, size, on_progress)
        if file is not None:
            kept_arrays.save(file, seal, {"digests": known.digests, "good": known.good}, known.skipped)
    places = known.good.nonzero()[0]
    ids = Derived(len(places), lambda row: pool[int(places[row])].id)
    digests = Derived(len(places), lambda row: known.digests[places[row]].tobytes().hex())
    images = Squares(lambda place: read_square(pool[place], size), places, (3, size, size))
    return UnlabeledSet(ids, images, digests), known.skipped


def _check(pool: Pool, size: int, on_progress: ProgressCallback) -> Checked:
    """Read every image once."""
    digests, good = np.zeros((len(pool), DIGEST), np.uint8), np.zeros(len(pool), bool)
    skipped: list[str] = []

    def look(place: int) -> bytes | str:
        try:
            return digest(read_square(pool[place], size))
        except DataError as error:
            return str(error)

    for place, found in enumerate(ahead.results(look, range(len(pool)))):
        if isinstance(found, bytes):
            digests[place], good[place] = np.frombuffer(found, np.uint8), True
        elif len(skipped) < TOLD:
            skipped.append(found)
        on_progress(place + 1, len(pool))
    more = int(len(pool) - good.sum()) - len(skipped)
    return Checked(digests, good, (*skipped, f"{more:,} more images that cannot be read") if more else tuple(skipped))
