"""Segmentation data sets known by name: their properties, and how to read them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dmt.data.pixels import cityscapes, flat, masks, published, scenes, voc
from dmt.data.ragged import Ragged
from dmt.data.sets import LabeledSet
from dmt.errors import DataError
from dmt.types import IMAGENET, Normalization, ProgressCallback

Notify = Callable[[str], None]
Parts = tuple[LabeledSet[Ragged], LabeledSet[Ragged]]


@dataclass(frozen=True)
class SegmentSet:
    """Properties of a data set, known without opening it.

    Attributes:
        name: as options name it.
        classes: names of the classes, in order.
        train, test: number of images.
        normalization: for nets that do not define their own.
        palette: (red, green, blue) of the classes, to display masks.
        read: maps (folder, notify, tell) to (train, test).
        lists: the data set whose published splits apply, "voc" or "cityscapes"; None if there are none.
    """

    name: str
    classes: tuple[str, ...]
    train: int
    test: int
    normalization: Normalization
    palette: tuple[tuple[int, int, int], ...]
    read: Callable[[Path, Notify, ProgressCallback], Parts]
    lists: str | None = None


def _read_scenes(folder: Path, notify: Notify, tell: ProgressCallback) -> Parts:
    return scenes.scenes()


def _read_voc(folder: Path, notify: Notify, tell: ProgressCallback) -> Parts:
    found = voc.find(folder, notify)
    classes = len(voc.CLASSES)
    training, testing = found.training(), found.testing()
    return masks.open_set(training, classes, tell=tell), masks.open_set(testing, classes, tell=tell)


def _read_cityscapes(folder: Path, notify: Notify, tell: ProgressCallback) -> Parts:
    found = cityscapes.find(folder)
    classes, table = len(cityscapes.CLASSES), cityscapes.TABLE
    training, testing = found.training(), found.testing()
    return (
        masks.open_set(training, classes, table, cityscapes.half, tell),
        masks.open_set(testing, classes, table, cityscapes.half, tell),
    )


def _read_voc_small(folder: Path, notify: Notify, tell: ProgressCallback) -> Parts:
    found = flat.open_folder(folder if (folder / "images").is_dir() else folder / "voc12")
    classes = len(voc.CLASSES)
    if found.classes != voc.CLASSES:
        raise DataError(f"{found.root} does not hold the 21 classes of PASCAL VOC; give its folder by --data")
    train, test = (masks.open_set(found.split(name), classes, tell=tell) for name in ("train_aug", "val"))
    return train, test


SEGMENT_SETS: dict[str, SegmentSet] = {
    each.name: each
    for each in (
        SegmentSet(
            name="scenes",
            classes=scenes.CLASSES,
            train=600,
            test=150,
            normalization=Normalization((0.302, 0.299, 0.304), (0.146, 0.148, 0.147)),
            palette=voc.PALETTE,
            read=_read_scenes,
        ),
        SegmentSet("voc", voc.CLASSES, 10_582, 1_449, IMAGENET, voc.PALETTE, _read_voc, "voc"),
        SegmentSet("voc-small", voc.CLASSES, 10_582, 1_449, IMAGENET, voc.PALETTE, _read_voc_small, "voc"),
        SegmentSet(
            "cityscapes", cityscapes.CLASSES, 2_975, 500, IMAGENET, cityscapes.PALETTE, _read_cityscapes, "cityscapes"
        ),
    )
}


def require_published(name: str, folder: Path, notify: Notify) -> None:
    """Raise an error if a folder lacks a training image that the published lists name."""
    published.ratios(name)  # raises an error for a data set without published lists
    if name == "voc":
        there = set(voc.find(folder, notify).training().ids)
    else:
        there = set(cityscapes.find(folder).training().ids)
    wanted = published.ids("voc_trainaug" if name == "voc" else "cityscapes_train")
    lost = [each for each in wanted if each not in there]
    if lost:
        raise DataError(f"{folder} lacks {len(lost):,} of the {len(wanted):,} images of the lists, first {lost[0]}")
