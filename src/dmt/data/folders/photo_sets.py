"""Read a user's images: squares of one size for classification, images of different sizes for segmentation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from dmt import files, schemas
from dmt.data import ahead, buffers, ragged
from dmt.data.folders import mask_files, photo_files, photo_pools
from dmt.data.folders.contents import FolderContents, Photo, Source
from dmt.data.folders.photo_pools import Pool
from dmt.data.ragged import Ragged
from dmt.data.sets import Images, LabeledSet, Planes, UnlabeledSet
from dmt.data.squares import Squares
from dmt.errors import DataError, RunError
from dmt.types import ProgressCallback


@dataclass(frozen=True)
class FolderSets(Generic[Planes, Images]):
    """The decoded images of a folder, in memory or in memory-mapped files.

    Attributes:
        skipped: messages about unlabeled files that could not be read.
    """

    labeled: LabeledSet[Planes]
    unlabeled: UnlabeledSet[Images]
    validation: LabeledSet[Planes]
    test: LabeledSet[Planes]
    skipped: tuple[str, ...]


SquareSets = FolderSets[Tensor, Tensor] | FolderSets[Tensor, Squares]


def limited(size: tuple[int, int], most: int) -> tuple[int, int]:
    """Scale (height, width) down, keeping the aspect ratio, so that the longer side is at most ``most``."""
    longer = max(size)
    if longer <= most:
        return size
    return max(1, round(size[0] * most / longer)), max(1, round(size[1] * most / longer))


def read_squares(contents: FolderContents, size: int, cache: Path | None, on_progress: ProgressCallback) -> SquareSets:
    """Read all photos as (N, 3, size, size) uint8. Unlabeled photos in shards too large for memory are read on access.

    Args:
        contents: the folder.
        size: side of the squares in pixels.
        cache: folder for a file of decoded images, used if they are too many for memory, and reused if still valid.
        on_progress: called with the number of photos read so far and the total.
    """
    pool = contents.unlabeled
    if not isinstance(pool, Pool) or len(pool) * 3 * size**2 <= buffers.MEMORY:
        return _read_all(contents, size, cache, on_progress)
    rest = _read_all(replace(contents, unlabeled=()), size, cache, on_progress)
    unlabeled, skipped = photo_pools.squares(pool, size, cache, on_progress)
    return FolderSets(rest.labeled, unlabeled, rest.validation, rest.test, skipped)


def _read_all(
    contents: FolderContents, size: int, cache: Path | None, on_progress: ProgressCallback
) -> FolderSets[Tensor, Tensor]:
    known = [photo for _, part in contents.parts() for photo in part if part is not contents.unlabeled]
    photos = [*known, *contents.unlabeled]
    shape = (len(photos), 3, size, size)
    how = f"{size} {len(known)}"
    if isinstance(contents.unlabeled, Pool) and contents.unlabeled.shards is not None:
        how += f" {contents.unlabeled.shards.seal}"  # `unchanged` cannot look at URLs
    file = None if cache is None else cache / f"squares-{photo_pools.unchanged(photos, how)[:16]}.bin"
    index = None if file is None else file.with_suffix(".json")
    kept = None if file is None or index is None else _kept(file, index, shape)
    if file is not None and kept is not None:
        known_images = buffers.reopen(shape, torch.uint8, file)
        if _vouched(known_images, kept["digests"]):
            return _squares(contents, known_images, kept["digests"], kept["skipped"])
    images = buffers.make(shape, torch.uint8, file)
    digests: list[str | None] = []
    skipped: list[str] = []
    place = 0

    def read(photo: Photo) -> np.ndarray | DataError:
        try:
            return photo_pools.read_square(photo, size)
        except DataError as error:
            return error

    for done, found in enumerate(ahead.results(read, photos), start=1):
        if isinstance(found, DataError):
            if done <= len(known):
                raise found
            digests.append(None)
            skipped.append(str(found))
            continue
        digests.append(_digest(found))
        images[place] = torch.from_numpy(found)
        place += 1
        on_progress(done, len(photos))
    if file is not None and index is not None and file.exists():
        buffers.flush(file)  # before the index is written, which asserts that the file is complete
        files.write_json(index, {"digests": digests, "skipped": skipped})
    return _squares(contents, images, digests, skipped)


def _kept(file: Path, index: Path, shape: tuple[int, int, int, int]) -> dict[str, list[str]] | None:
    """Return the index of images that were decoded before; None if there are none, or a file is damaged."""
    if not (index.exists() and file.is_file() and file.stat().st_size == math.prod(shape)):
        return None
    try:
        kept: dict[str, list[str]] = files.read_json(index, schemas.SQUARES)
    except RunError:
        return None
    return kept if len(kept["digests"]) == shape[0] else None


def _vouched(images: Tensor, digests: Sequence[str | None]) -> bool:
    """Return whether cached images match their digests; hashing is far quicker than decoding them again."""
    good = [digest for digest in digests if digest is not None]
    return all(_digest(image.numpy()) == digest for image, digest in zip(images, good, strict=False))


def _digest(image: np.ndarray) -> str:
    return photo_pools.digest(image).hex()


def _squares(
    contents: FolderContents, images: Tensor, digests: Sequence[str | None], skipped: Sequence[str]
) -> FolderSets[Tensor, Tensor]:
    start, sets = 0, {}
    for name, photos in contents.parts():
        if name == "unlabeled":
            continue
        ids, end = tuple(photo.id for photo in photos), start + len(photos)
        labels = torch.tensor([photo.label for photo in photos], dtype=torch.int64)
        sets[name] = LabeledSet(ids, images[start:end], labels)
        start = end
    good = [(photo.id, digest) for photo, digest in zip(contents.unlabeled, digests[start:], strict=True) if digest]
    unlabeled = UnlabeledSet(
        tuple(each for each, _ in good), images[start : start + len(good)], tuple(digest for _, digest in good)
    )
    return FolderSets(sets["labeled"], unlabeled, sets["validation"], sets["test"], tuple(skipped))


def read_planes(
    contents: FolderContents, most: int, cache: Path | None, on_progress: ProgressCallback
) -> FolderSets[Ragged, Ragged]:
    """Read all photos and masks, scaled down so that no side exceeds ``most`` pixels; 255 where there is no label."""
    skipped: list[str] = []
    classes = len(contents.classes)

    def labeled(name: str, photos: Sequence[Photo]) -> LabeledSet[Ragged]:
        natives = [photo_files.photo_size(photo.path) for photo in photos]
        sizes = [limited(native, most) for native in natives]

        def mask(position: int) -> np.ndarray:
            path = photos[position].mask
            assert path is not None
            plane = mask_files.read_mask(path, contents.colors, classes)
            mask_files.require_size(path, plane.shape, photos[position].path, natives[position])
            return _resized(plane, sizes[position], Image.Resampling.NEAREST)

        images = ragged.fill(
            sizes, lambda at: _photo(photos[at].path, sizes[at]), on_progress=on_progress, file=_file(cache, name)
        )
        masks = ragged.fill(sizes, mask, channels=None, on_progress=on_progress)
        return LabeledSet(tuple(photo.id for photo in photos), images, masks)

    def unlabeled(photos: Sequence[Photo]) -> UnlabeledSet[Ragged]:
        good: list[tuple[Photo, tuple[int, int]]] = []
        for photo in photos:
            try:
                good.append((photo, limited(photo_files.photo_size(photo.path), most)))
            except DataError as error:
                skipped.append(str(error))
        broken: set[int] = set()

        def read(position: int) -> np.ndarray:
            photo, size = good[position]
            try:
                return _photo(photo.path, size)
            except DataError as error:
                broken.add(position)
                skipped.append(str(error))
                return np.zeros((*size, 3), np.uint8)

        images = ragged.fill([size for _, size in good], read, on_progress=on_progress, file=_file(cache, "unlabeled"))
        kept = torch.tensor([at for at in range(len(good)) if at not in broken], dtype=torch.int64)
        return UnlabeledSet(tuple(good[at][0].id for at in kept.tolist()), images[kept])

    return FolderSets(
        labeled("labeled", contents.labeled),
        unlabeled(contents.unlabeled),
        labeled("validation", contents.validation),
        labeled("test", contents.test),
        tuple(sorted(skipped)),
    )


def _photo(path: Source, size: tuple[int, int]) -> np.ndarray:
    return _resized(photo_files.read_photo(path), size, Image.Resampling.BILINEAR)


def _resized(plane: np.ndarray, size: tuple[int, int], by: Image.Resampling) -> np.ndarray:
    if plane.shape[:2] == size:
        return plane
    return np.asarray(Image.fromarray(plane).resize((size[1], size[0]), by))


def _file(cache: Path | None, name: str) -> Path | None:
    return None if cache is None else cache / f"planes-{name}.bin"
