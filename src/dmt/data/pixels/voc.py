"""PASCAL VOC 2012 as published, with the additional masks of SBD if present."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dmt.data.pixels import masks, published
from dmt.data.pixels.masks import MaskedImages
from dmt.errors import DataError

CLASSES = (
    "background", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow",
    "diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor",
)  # fmt: skip

_OFFICIAL, _SBD = "SegmentationClass", "SegmentationClassAug"
_GET = "unpack VOCtrainval_11-May-2012.tar there"


def _color(index: int) -> tuple[int, int, int]:
    """Return the color of a class: red has bits 0, 3, 6 of its index as highest bits, green 1, 4, 7, blue 2, 5."""
    red, green, blue = (
        sum((index >> (3 * place + channel) & 1) << (7 - place) for place in range(8)) for channel in range(3)
    )
    return red, green, blue


PALETTE = tuple(_color(index) for index in range(256))
"""(red, green, blue) of every mask value, including 255."""


@dataclass(frozen=True)
class VocFolder:
    """PASCAL VOC on disk.

    Attributes:
        root: the folder VOC2012.
        train_ids: ids of ``trainaug`` if the masks of SBD are present, otherwise of ``train``.
        test_ids: ids of ``val``.
    """

    root: Path
    train_ids: tuple[str, ...]
    test_ids: tuple[str, ...]

    def training(self, ids: Sequence[str] | None = None) -> MaskedImages:
        """Return all training images, or those named."""
        return self._masked(self.train_ids if ids is None else ids)

    def testing(self) -> MaskedImages:
        return self._masked(self.test_ids)

    def _masked(self, ids: Sequence[str]) -> MaskedImages:
        images = {path.stem: path for path in (self.root / "JPEGImages").glob("*.jpg")}
        # SBD's mask if there is one, otherwise VOC's: some copies have only the masks that SBD added
        found = {path.stem: path for name in (_OFFICIAL, _SBD) for path in (self.root / name).glob("*.png")}
        names = f"JPEGImages, {_OFFICIAL} and {_SBD}"
        return masks.pair(ids, images, found, f"complete {names} in {self.root}")


def find(folder: Path, notify: Callable[[str], None]) -> VocFolder:
    """Find PASCAL VOC in ``folder``, which may be VOC2012, VOCdevkit, or the folder that holds VOCdevkit."""
    root = _root(folder)
    test_ids = _list(root, ("val",))
    if (root / _SBD).is_dir():
        return VocFolder(root, _list(root, ("trainaug", "train_aug")), test_ids)
    train_ids = _list(root, ("train",))
    notify(
        f"{root} has no {_SBD}: only the {len(train_ids):,} masks of VOC itself can be learned from; "
        "put the 10,582 PNG files of the SBD masks there for the whole training set"
    )
    return VocFolder(root, train_ids, test_ids)


def _root(folder: Path) -> Path:
    for root in (folder, folder / "VOC2012", folder / "VOCdevkit" / "VOC2012"):
        if (root / "JPEGImages").is_dir():
            if not any((root / name).is_dir() for name in (_OFFICIAL, _SBD)):
                raise DataError(f"{root} has no {_OFFICIAL}; {_GET}")
            return root
    raise DataError(f"no PASCAL VOC in {folder}: VOCdevkit/VOC2012/JPEGImages is missing; {_GET} or give --data DIR")


def _list(root: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Read the ids of a list from the first of these files that exists, otherwise from the copy in this package."""
    for name in names:
        path = root / "ImageSets" / "Segmentation" / f"{name}.txt"
        if path.is_file():
            rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
            # some versions of the list give the paths of image and mask instead of an id
            return tuple(Path(row[0]).stem for row in rows if row)
    return published.ids(f"voc_{names[0]}")
