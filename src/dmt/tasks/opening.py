"""Open the data set that options describe. Only this module knows which options belong to which task."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dmt import run_files
from dmt.data import sets
from dmt.data.audits import Audit
from dmt.data.folders import photo_sets, photos
from dmt.data.folders.contents import FolderContents
from dmt.data.folders.photo_options import PhotoMaskOptions, PhotoOptions
from dmt.data.images.datasets import DATASETS
from dmt.data.images.options import DataOptions
from dmt.data.pixels.segment_options import SegmentOptions
from dmt.data.pixels.segment_sets import SEGMENT_SETS
from dmt.data.sets import LabeledSet, UnlabeledSet
from dmt.errors import DataError, OtherClassesError
from dmt.models.build import NetSpec
from dmt.tasks import classification, segmentation
from dmt.tasks.base import Task
from dmt.types import ProgressCallback

Options = DataOptions | SegmentOptions | PhotoOptions | PhotoMaskOptions
Notify = Callable[[str], None]


@dataclass(frozen=True)
class Opened:
    """A data set that was read but is not split yet.

    Attributes:
        options: what it was opened by.
        parts: (train, test) of a known data set, or the parts of a user's folder.
        whole: false if the unlabeled images of a user's folder were not opened.
    """

    options: Options
    parts: tuple[LabeledSet[Any], LabeledSet[Any]] | photo_sets.FolderSets[Any, Any]
    whole: bool = True

    @property
    def fingerprint(self) -> str:
        """A hash of all images and labels."""
        assert self.whole, "nothing is known of images that were not opened"
        if isinstance(self.parts, photo_sets.FolderSets):
            return " ".join(part.fingerprint for part in _in_order(self.parts))
        return sets.fingerprint(self.parts)

    def is_of(self, fingerprint: str) -> bool:
        """Return whether the parts that were opened are those of a run with this fingerprint."""
        if self.whole or not isinstance(self.parts, photo_sets.FolderSets):
            return self.fingerprint == fingerprint
        every, known = _in_order(self.parts), fingerprint.split(" ")
        return len(known) == len(every) and all(
            part is self.parts.unlabeled or part.fingerprint == told for part, told in zip(every, known, strict=True)
        )

    @property
    def skipped(self) -> tuple[str, ...]:
        """Messages about unlabeled files that could not be read."""
        return self.parts.skipped if isinstance(self.parts, photo_sets.FolderSets) else ()

    def split(self, seed: int) -> tuple[Task, Audit[Any]]:
        """Return the task of this seed, and the audit, which alone knows the ground truth of its unlabeled images."""
        match self.options, self.parts:
            case PhotoOptions() as options, photo_sets.FolderSets() as parts:
                return classification.split_photos(options, parts, seed)
            case PhotoMaskOptions() as options, photo_sets.FolderSets() as parts:
                return segmentation.split_photos(options, parts, seed)
            case SegmentOptions() as options, tuple() as images:
                return segmentation.split_up(options, images, seed)
            case DataOptions() as options, tuple() as images:
                return classification.split_up(options, images, seed)
        raise TypeError(f"{type(self.options).__name__} does not go with {type(self.parts).__name__}")


PARTS = ("labeled", "unlabeled", "validation", "test")
"""Parts of a user's folder, in the order of the fingerprint."""


def _in_order(parts: photo_sets.FolderSets[Any, Any]) -> tuple[LabeledSet[Any] | UnlabeledSet[Any], ...]:
    return tuple(getattr(parts, name) for name in PARTS)


def changed(known: str, now: str) -> str:
    """Return which parts of a user's folder differ between two fingerprints; empty if that cannot be told."""
    before, after = known.split(" "), now.split(" ")
    if len(before) != len(PARTS) or len(after) != len(PARTS):
        return ""
    return " and ".join(part for part, was, has in zip(PARTS, before, after, strict=True) if was != has)


def read(options: Options, folder: Path, notify: Notify, tell: ProgressCallback, cache: Path | None = None) -> Opened:
    """Read a data set.

    Args:
        options: which data set.
        folder: where it is; not used by data sets that need no files.
        notify: called with messages about anything unusual.
        tell: called with the number of files read so far and the total.
        cache: folder for decoded images that are too many for memory.
    """
    if isinstance(options, PhotoOptions | PhotoMaskOptions):
        return _own_folder(options, folder, notify, tell, cache)
    if isinstance(options, SegmentOptions):
        masked = SEGMENT_SETS[options.dataset]
        opened, known = Opened(options, masked.read(folder, notify, tell)), (masked.train, masked.test)
    else:
        data = DATASETS[options.dataset]
        opened, known = Opened(options, data.read(folder, notify)), (data.train, data.test)
    assert isinstance(opened.parts, tuple)
    found = (len(opened.parts[0]), len(opened.parts[1]))
    if found != known:
        notify(
            f"note: {options.dataset} has {known[0]:,} training and {known[1]:,} test images, "
            f"this folder has {found[0]:,} and {found[1]:,}"
        )
    return opened


def read_labeled(options: Options, folder: Path, notify: Notify, tell: ProgressCallback) -> Opened:
    """Read a data set for a caller that needs no unlabeled images: those of a user's folder are not opened."""
    if not isinstance(options, PhotoOptions | PhotoMaskOptions):
        return read(options, folder, notify, tell)
    contents = photos.open_labeled(folder)
    _require_classes(options, contents)
    return replace(read_folder(options, contents, tell), whole=False)


def contents_of(options: Options, folder: Path, cache: Path | None = None) -> FolderContents:
    """Return the contents of a user's folder, including shards of unlabeled images outside of it."""
    elsewhere = options.shards if isinstance(options, PhotoOptions | PhotoMaskOptions) else ()
    return photos.open_folder(folder, elsewhere, cache)


def _own_folder(
    options: PhotoOptions | PhotoMaskOptions, folder: Path, notify: Notify, tell: ProgressCallback, cache: Path | None
) -> Opened:
    contents = contents_of(options, folder, cache)
    _require_classes(options, contents)
    opened = read_folder(options, contents, tell, cache)
    assert isinstance(opened.parts, photo_sets.FolderSets)
    skipped = opened.parts.skipped
    if contents.unlabeled and not len(opened.parts.unlabeled):
        raise DataError(f"none of the {len(skipped):,} unlabeled images can be read, the first: {skipped[0]}")
    for line in skipped[:5]:
        notify(f"skipped: {line}")
    if len(skipped) > 5:
        notify(f"skipped: {len(skipped) - 5:,} more unlabeled files; the run's {run_files.SKIPPED} names them all")
    return opened


def _require_classes(options: PhotoOptions | PhotoMaskOptions, contents: FolderContents) -> None:
    if contents.classes != options.classes or contents.pixels != isinstance(options, PhotoMaskOptions):
        known = ", ".join(options.classes)
        raise OtherClassesError(f"the run was made for the classes {known}, and {contents.root} has others")


def read_folder(
    options: PhotoOptions | PhotoMaskOptions,
    contents: FolderContents,
    tell: ProgressCallback = lambda done, of: None,
    cache: Path | None = None,
) -> Opened:
    """Read the images of a user's folder whose layout is already recognized."""
    if isinstance(options, PhotoOptions):
        return Opened(options, photo_sets.read_squares(contents, options.size, cache, tell))
    return Opened(options, photo_sets.read_planes(contents, options.size, cache, tell))


def net_spec(options: Options, net: str) -> NetSpec:
    """Return the specification of a net for a data set, without opening it."""
    match options:
        case PhotoOptions():
            return classification.photo_spec(options, net)
        case PhotoMaskOptions():
            return segmentation.photo_spec(options, net)
        case SegmentOptions():
            return segmentation.net_spec(options, net)
    return classification.net_spec(options, net)


def classes(options: Options) -> tuple[str, ...]:
    """Return the names of the classes, in order."""
    match options:
        case PhotoOptions() | PhotoMaskOptions():
            return options.classes
        case SegmentOptions():
            return SEGMENT_SETS[options.dataset].classes
    return DATASETS[options.dataset].classes


def palette(options: Options) -> tuple[tuple[int, int, int], ...]:
    """Return the colors of the classes; empty for classification."""
    match options:
        case PhotoMaskOptions():
            return options.colors
        case SegmentOptions():
            return SEGMENT_SETS[options.dataset].palette
    return ()


def longest(options: Options) -> int | None:
    """Return the longer side to which larger images are scaled down before segmentation; None if they are not."""
    return options.size if isinstance(options, PhotoMaskOptions) else None
