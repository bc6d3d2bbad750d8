"""Unlabeled images of a user, many of them in shards: how they are found, and squares of them without holding any."""

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
"""Bytes that are kept of what an image was."""

LOOKED_AT = 100_000
"""Images in shards that are looked at to know what is wrong with them."""

TOLD = 1000
"""Images that cannot be read whose reasons are kept."""


@dataclass(frozen=True)
class Pool(Sequence[Photo]):
    """Image files, then those in shards.

    Attributes:
        photos: files of their own.
        tars: shards that were found beside them.
        shards: what is in the shards, once they are opened.
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
    """A folder with the images in its shards, and in those elsewhere, among the unlabeled ones.

    Args:
        urls: more shards: files, URLs, names with ``{000..999}``.
        cache: folder in which it is kept where in the shards their images are.
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
    """Of shards elsewhere, the same wherever they are moved to together: those of the files, if they differ."""
    paths = [urlsplit(each).path if tar_places.is_url(each) else each for each in places]
    short = [each.rpartition("/")[2] for each in paths]
    return short if len({*short}) == len(short) else [each.lstrip("/") for each in paths]


def thinned(contents: FolderContents) -> FolderContents:
    """The same with every second, third … unlabeled image of a pool so large that nobody can look at all of them."""
    pool = contents.unlabeled
    if not isinstance(pool, Pool) or pool.shards is None or len(pool) <= LOOKED_AT:
        return contents
    step = -(-len(pool.shards) // LOOKED_AT)
    note = f"of {len(pool):,} unlabeled images, one of every {step:,} in shards was checked"
    some = replace(pool, shards=pool.shards.every(step))
    return replace(contents, unlabeled=some, notes=(*contents.notes, note))


def square(image: Image.Image, size: int) -> Image.Image:
    """The middle of an image as a square of this size, antialiased."""
    return ImageOps.fit(image, (size, size), Image.Resampling.BILINEAR)


def read_square(photo: Photo, size: int) -> np.ndarray:
    """(3, size, size) uint8."""
    whole = Image.fromarray(photo_files.read_photo(photo.path))
    return np.ascontiguousarray(np.asarray(square(whole, size)).transpose(2, 0, 1))


def digest(image: np.ndarray) -> bytes:
    """Of what an image shows."""
    return hashlib.sha256(image.tobytes()).digest()[:DIGEST]


def unchanged(photos: Iterable[Photo], how: str) -> str:
    """A digest of files that were not touched: names, bytes and times; and of how they were read."""
    digest = hashlib.sha256(how.encode())
    for photo in photos:
        try:
            about = (photo.path if isinstance(photo.path, Path) else Path(photo.path.tar)).stat()
        except OSError:
            continue  # reported when it is read
        digest.update(f"{photo.id}\0{about.st_size}\0{about.st_mtime_ns}\n".encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class Checked:
    """What is known of every image of a pool since all were read.

    Attributes:
        digests: (N, 16) uint8.
        good: (N,) bool, false for those that cannot be read.
        skipped: why, of the first of these.
    """

    digests: np.ndarray
    good: np.ndarray
    skipped: tuple[str, ...]


def squares(
    pool: Pool, size: int, cache: Path | None, on_progress: ProgressCallback
) -> tuple[UnlabeledSet[Squares], tuple[str, ...]]:
    """The images of a pool, each read when it is asked for, and why others cannot be.

    All of them are read once to know that; what came of it is kept in ``cache``.
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
