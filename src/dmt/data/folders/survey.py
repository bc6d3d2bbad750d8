"""A survey of a folder: every file is decoded and checked once, and summarized in a few numbers."""

import hashlib
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from PIL import Image

from dmt.data import ahead
from dmt.data.folders import copies, likeness, mask_files, photo_files, photo_values
from dmt.data.folders.contents import FolderContents, Photo, Source
from dmt.data.folders.photo_values import Values
from dmt.data.pixels.masks import VOID
from dmt.errors import DataError
from dmt.types import ProgressCallback

Group = tuple["Look", ...]
Spread = tuple[float, float, float]  # minimum, median, maximum


@dataclass(frozen=True, slots=True)
class Look:
    """The summary of one photo.

    Attributes:
        id, label: as in the folder.
        part: labeled, unlabeled, validation or test.
        size: (height, width); None if the image cannot be read.
        digest: hash of the decoded pixels: equal for equal pictures, whatever their file format.
        likeness: perceptual hash that similar pictures share, see ``likeness.dhash``.
        problem: one line that says why the photo or its mask cannot be used; None if they can.
        mask: digest of the mask.
        counts: number of pixels of each class in the mask.
        ignored: share of the mask's pixels without a label.
        rotated: whether the photo has a mask and is rotated by its EXIF data.
        values: whether values of more than 8 bits can be read without loss.
        pages: number of pages in the file, of which only the first is read.
    """

    id: str
    part: str
    label: int | None = None
    size: tuple[int, int] | None = None
    digest: str | None = None
    likeness: int = 0
    problem: str | None = None
    mask: str | None = None
    counts: tuple[int, ...] | None = None
    ignored: float = 0.0
    values: Values = "usual"
    rotated: bool = False
    pages: int = 1

    @property
    def truth(self) -> int | str | None:
        """The label or the digest of the mask, to compare photos by; None if the photo has neither."""
        return self.mask if self.label is None else self.label

    @property
    def present(self) -> list[int]:
        """The class of the image, or all classes in its mask."""
        if self.counts is not None:
            return [label for label, count in enumerate(self.counts) if count]
        return [] if self.label is None else [self.label]


@dataclass(frozen=True)
class Dimensions:
    """Heights, widths and aspect ratios (longer side / shorter side) of all images that can be read."""

    heights: Spread
    widths: Spread
    aspects: Spread


@dataclass(frozen=True)
class Duplicates:
    """Pictures that occur more than once.

    Attributes:
        exact: groups of photos with the same pixels.
        near: pairs of pictures that look alike though their pixels differ, each as the group of its exact copies.
    """

    exact: tuple[Group, ...]
    near: tuple[tuple[Group, Group], ...]

    def shared(self, first: str, second: str, near: bool = False) -> dict[str, str]:
        """Map the id of each photo of the second part to an equal photo of the first part, or to a similar one."""
        both = [(group, group) for group in self.exact]
        if near:
            both = [*self.near, *((right, left) for left, right in self.near)]
        shared: dict[str, str] = {}
        for group, others in both:
            name = next((look.id for look in others if look.part == first), None)
            for look in group:
                if look.part == second and name is not None:
                    shared.setdefault(look.id, name)
        return shared

    def within(self, part: str, near: bool = False) -> list[list[Look]]:
        """Return groups of equal photos within a part, or of photos that are similar directly or through others."""
        if not near:
            inside = [[look for look in group if look.part == part] for group in self.exact]
            return [group for group in inside if len(group) > 1]
        halves = [[[look for look in group if look.part == part] for group in pair] for pair in self.near]
        pairs = [(left, right) for left, right in halves if left and right]
        pictures = {group[0].id: group for pair in pairs for group in pair}
        places = {id: place for place, id in enumerate(pictures)}
        linked = likeness.groups((places[left[0].id], places[right[0].id]) for left, right in pairs)
        every = list(pictures.values())
        return [[look for place in group for look in every[place]] for group in linked]


@dataclass(frozen=True)
class Survey:
    """The summaries of all photos of a folder, part by part in the folder's order.

    Attributes:
        looks: one per photo.
        classes: number of classes.
        alike: pairs of digests of pictures that are not equal but appear to be the same photo.
    """

    looks: tuple[Look, ...]
    classes: int
    alike: tuple[tuple[str, str], ...] = ()

    def part(self, name: str) -> list[Look]:
        """Return all photos of a part."""
        return [look for look in self.looks if look.part == name]

    def usable(self, part: str) -> list[Look]:
        """Return the photos of a part that have no problem."""
        return [look for look in self.part(part) if look.problem is None]

    def unreadable(self, part: str) -> list[Look]:
        """Return the photos that cannot be read or whose mask cannot be used; ``problem`` says why."""
        return [look for look in self.part(part) if look.problem is not None]

    def images(self, part: str) -> list[int]:
        """Count the usable images of each class; in segmentation, those with at least one pixel of it."""
        found = Counter(label for look in self.usable(part) for label in look.present)
        return [found[label] for label in range(self.classes)]

    def shares(self, part: str) -> list[float]:
        """Compute the share of each class in the labeled pixels of a part."""
        totals = [0] * self.classes
        for look in self.usable(part):
            totals = [total + more for total, more in zip(totals, look.counts or totals, strict=True)]
        return [total / max(sum(totals), 1) for total in totals]

    @cached_property
    def dimensions(self) -> Dimensions | None:
        """Image sizes and aspect ratios; None if no image can be read."""
        sizes = [look.size for look in self.looks if look.size is not None]
        if not sizes:
            return None
        heights, widths = zip(*sizes, strict=True)
        return Dimensions(_spread(heights), _spread(widths), _spread(max(size) / min(size) for size in sizes))

    @cached_property
    def duplicates(self) -> Duplicates:
        """Equal and similar pictures, within parts and between them."""
        pictures: dict[str, list[Look]] = {}
        for look in self.looks:
            if look.digest is not None:
                pictures.setdefault(look.digest, []).append(look)
        groups = {digest: tuple(looks) for digest, looks in pictures.items()}
        near = tuple((groups[left], groups[right]) for left, right in self.alike)
        return Duplicates(tuple(group for group in groups.values() if len(group) > 1), near)


def survey(contents: FolderContents, on_progress: ProgressCallback | None = None) -> Survey:
    """Look at every file, in threads, then again at those that may be copies; ``on_progress`` is called for both."""
    count = sum(len(photos) for _, photos in contents.parts())
    tasks = ((photo, part) for part, photos in contents.parts() for photo in photos)
    looks: list[Look] = []
    for seen in ahead.results(lambda task: look(task[0], contents, task[1]), tasks):
        looks.append(seen)
        if on_progress is not None:
            on_progress(len(looks), count)
    return Survey(tuple(looks), len(contents.classes), _alike(contents, looks, on_progress))


def _alike(
    contents: FolderContents, looks: Sequence[Look], on_progress: ProgressCallback | None
) -> tuple[tuple[str, str], ...]:
    """Return pairs of digests of pictures that appear to be one photo, comparing candidates found by their hashes."""
    hashes = {look.digest: look.likeness for look in looks if look.digest is not None}
    digests = list(hashes)
    groups = [[digests[place] for place in group] for group in copies.candidates(list(hashes.values()))]
    wanted = {digest for group in groups for digest in group}
    photos = (photo for _, each in contents.parts() for photo in each)
    sources = {look.digest: photo.path for photo, look in zip(photos, looks, strict=True) if look.digest in wanted}
    found, done = list[tuple[str, str]](), len(looks)
    for group in groups:
        seen = zip(group, ahead.results(_thumbnail, [sources[digest] for digest in group]), strict=True)
        small = {digest: each for digest, each in seen if each is not None}
        names = list(small)
        pairs = copies.pairs(list(small.values()), [hashes[digest] for digest in names])
        found += [(names[left], names[right]) for left, right in pairs]
        done += len(group)
        if on_progress is not None:
            on_progress(done, len(looks) + len(wanted))
    return tuple(found)


def _thumbnail(path: Source) -> copies.Thumbnail | None:
    try:
        return copies.thumbnail(photo_files.read_photo(path))
    except Exception:  # readable before but not any more: the run will report it
        return None


def look(photo: Photo, contents: FolderContents, part: str = "unlabeled") -> Look:
    """Decode a photo and its mask completely, so that truncated files are found too, and summarize them."""
    try:
        image = photo_files.read_photo(photo.path)
        values = photo_values.values(photo.path)
        rotated = photo.mask is not None and photo_files.is_rotated(photo.path)
        pages = photo_files.pages(photo.path)
    except Exception as error:  # an unforeseen error of one file must not end the survey of all others
        return Look(photo.id, part, photo.label, problem=_line(photo, error))
    size = (image.shape[0], image.shape[1])
    seen = Look(
        photo.id,
        part,
        photo.label,
        size,
        _digest(image),
        likeness.dhash(image),
        values=values,
        rotated=rotated,
        pages=pages,
    )
    del image  # before the mask is read, to save memory
    if photo.mask is None:
        return seen
    try:
        mask = mask_files.read_mask(photo.mask, contents.colors, len(contents.classes))
        mask_files.require_size(photo.mask, mask.shape, photo.path, size)
    except Exception as error:
        return replace(seen, problem=_line(photo, error))
    histogram = Image.fromarray(mask).histogram()  # unlike np.bincount, makes no int64 copy
    counts = tuple(histogram[: len(contents.classes)])
    return replace(seen, mask=_digest(mask), counts=counts, ignored=histogram[VOID] / mask.size)


def _line(photo: Photo, error: Exception) -> str:
    if isinstance(error, DataError):
        return photo_files.shown(str(error))
    return photo_files.shown(f"{photo.path} cannot be read ({type(error).__name__}: {error}); leave it out")


def _digest(plane: npt.NDArray[np.uint8]) -> str:
    digest = hashlib.sha256(f"{plane.shape}".encode())
    digest.update(np.ascontiguousarray(plane).data)
    return digest.hexdigest()[:32]


def _spread(values: Iterable[float]) -> Spread:
    values = list(values)
    return min(values), statistics.median(values), max(values)
