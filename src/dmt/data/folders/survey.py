"""A look at every file of a folder: decoded once, checked, and kept as a few numbers."""

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
from dmt.data.folders import copies, likeness, photo_files
from dmt.data.folders.contents import FolderContents, Photo, Source
from dmt.data.pixels.masks import VOID
from dmt.errors import DataError
from dmt.types import ProgressCallback

Group = tuple["Look", ...]
Spread = tuple[float, float, float]  # least, median, greatest


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen of one photo.

    Attributes:
        id, label: as in the folder.
        part: labeled, unlabeled, validation or test.
        size: (height, width); None if the image cannot be read.
        digest: of the decoded pixels: equal for equal pictures, whatever their files.
        likeness: a hash that similar pictures share, see ``likeness.dhash``.
        problem: why the photo or its mask cannot be used, in a line.
        mask: digest of the mask.
        counts: pixels of each class in the mask.
        ignored: share of pixels without a label in the mask.
        finite: whether every value of the photo is a finite number; floats in TIFF files need not be.
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
    finite: bool = True

    @property
    def truth(self) -> int | str | None:
        """Equal for equal labels or masks; None without."""
        return self.mask if self.label is None else self.label

    @property
    def present(self) -> list[int]:
        """The class of the image, or all classes that a pixel of it has."""
        if self.counts is not None:
            return [label for label, count in enumerate(self.counts) if count]
        return [] if self.label is None else [self.label]


@dataclass(frozen=True)
class Dimensions:
    """Of all images that can be read: heights, widths, and how often the longer side holds the shorter one."""

    heights: Spread
    widths: Spread
    aspects: Spread


@dataclass(frozen=True)
class Duplicates:
    """Pictures that occur more than once.

    Attributes:
        exact: the same pixels, in groups.
        near: pairs of pictures whose pixels differ but which look alike; of each picture all its exact copies.
    """

    exact: tuple[Group, ...]
    near: tuple[tuple[Group, Group], ...]

    def shared(self, first: str, second: str, near: bool = False) -> dict[str, str]:
        """Photos of the second part that are equal to, or like, one of the first, and its name."""
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
        """Groups in one part; near ones of pictures that are alike directly or through others of the part."""
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
    """What was seen of a folder, part by part in its order.

    Attributes:
        alike: digests of pictures that are not equal but appear to be one photo, in pairs.
    """

    looks: tuple[Look, ...]
    classes: int
    alike: tuple[tuple[str, str], ...] = ()

    def part(self, name: str) -> list[Look]:
        """All photos of a part."""
        return [look for look in self.looks if look.part == name]

    def usable(self, part: str) -> list[Look]:
        """Photos that have no problem."""
        return [look for look in self.part(part) if look.problem is None]

    def unreadable(self, part: str) -> list[Look]:
        """Photos that cannot be read, or whose mask cannot be used; ``problem`` says why."""
        return [look for look in self.part(part) if look.problem is not None]

    def images(self, part: str) -> list[int]:
        """Usable images of each class; where pixels get labels, images with a pixel of it."""
        found = Counter(label for look in self.usable(part) for label in look.present)
        return [found[label] for label in range(self.classes)]

    def shares(self, part: str) -> list[float]:
        """Share of each class in the labeled pixels of a part."""
        totals = [0] * self.classes
        for look in self.usable(part):
            totals = [total + more for total, more in zip(totals, look.counts or totals, strict=True)]
        return [total / max(sum(totals), 1) for total in totals]

    @cached_property
    def dimensions(self) -> Dimensions | None:
        """None if there is no image that can be read."""
        sizes = [look.size for look in self.looks if look.size is not None]
        if not sizes:
            return None
        heights, widths = zip(*sizes, strict=True)
        return Dimensions(_spread(heights), _spread(widths), _spread(max(size) / min(size) for size in sizes))

    @cached_property
    def duplicates(self) -> Duplicates:
        """Between and within parts."""
        pictures: dict[str, list[Look]] = {}
        for look in self.looks:
            if look.digest is not None:
                pictures.setdefault(look.digest, []).append(look)
        groups = {digest: tuple(looks) for digest, looks in pictures.items()}
        near = tuple((groups[left], groups[right]) for left, right in self.alike)
        return Duplicates(tuple(group for group in groups.values() if len(group) > 1), near)


def survey(contents: FolderContents, on_progress: ProgressCallback | None = None) -> Survey:
    """Look at every file, in threads, then again at those that may be copies; ``on_progress`` hears of both."""
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
    """Digests of pictures that appear to be one photo: candidates by their hashes are decoded again and compared."""
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
    except Exception:  # it was read before, and is not any more: the run will say so
        return None


def look(photo: Photo, contents: FolderContents, part: str = "unlabeled") -> Look:
    """Decode a photo and its mask in full, so that files that are cut off are found too."""
    try:
        image = photo_files.read_photo(photo.path)
        finite = photo_files.is_finite(photo.path)
    except Exception as error:  # the one file that no decoder foresaw must not end the survey of all others
        return Look(photo.id, part, photo.label, problem=_line(photo, error))
    size = (image.shape[0], image.shape[1])
    seen = Look(photo.id, part, photo.label, size, _digest(image), likeness.dhash(image), finite=finite)
    del image  # before the mask comes: of large pictures one at a time
    if photo.mask is None:
        return seen
    try:
        mask = photo_files.read_mask(photo.mask, contents.colors, len(contents.classes))
        photo_files.require_size(photo.mask, mask.shape, size)
    except Exception as error:
        return replace(seen, problem=_line(photo, error))
    histogram = Image.fromarray(mask).histogram()  # 256 numbers, without a wider copy of the plane
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
