"""Cityscapes as published, read at half its size as in the paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dmt.data.pixels import masks
from dmt.data.pixels.masks import MaskedImages, Plane, Size
from dmt.errors import DataError

# name: (number in labelIds files, color), in the order of the classes
_CLASSES: dict[str, tuple[int, tuple[int, int, int]]] = {
    "road": (7, (128, 64, 128)),
    "sidewalk": (8, (244, 35, 232)),
    "building": (11, (70, 70, 70)),
    "wall": (12, (102, 102, 156)),
    "fence": (13, (190, 153, 153)),
    "pole": (17, (153, 153, 153)),
    "traffic light": (19, (250, 170, 30)),
    "traffic sign": (20, (220, 220, 0)),
    "vegetation": (21, (107, 142, 35)),
    "terrain": (22, (152, 251, 152)),
    "sky": (23, (70, 130, 180)),
    "person": (24, (220, 20, 60)),
    "rider": (25, (255, 0, 0)),
    "car": (26, (0, 0, 142)),
    "truck": (27, (0, 0, 70)),
    "bus": (28, (0, 60, 100)),
    "train": (31, (0, 80, 100)),
    "motorcycle": (32, (0, 0, 230)),
    "bicycle": (33, (119, 11, 32)),
}

CLASSES = tuple(_CLASSES)
PALETTE = tuple(color for _, color in _CLASSES.values())
"""(red, green, blue) of every class."""

TABLE: Plane = np.full(256, masks.VOID, dtype=np.uint8)
"""Maps numbers in labelIds files to classes; classes that are not evaluated are void."""
TABLE[[number for number, _ in _CLASSES.values()]] = range(len(CLASSES))

IMAGE, MASK = "_leftImg8bit.png", "_gtFine_labelIds.png"
_GET = "unpack leftImg8bit_trainvaltest.zip and gtFine_trainvaltest.zip there"


def half(size: Size) -> Size:
    """Return the size at which a file of this size is read: 512×1024 for 1024×2048."""
    return size[0] // 2, size[1] // 2


@dataclass(frozen=True)
class CityscapesFolder:
    """Cityscapes on disk: ``root`` holds leftImg8bit and gtFine; ids are ``city/stem``."""

    root: Path
    train_ids: tuple[str, ...]
    test_ids: tuple[str, ...]

    def training(self, ids: Sequence[str] | None = None) -> MaskedImages:
        """Return all training images, or those named."""
        return self._masked("train", self.train_ids if ids is None else ids)

    def testing(self) -> MaskedImages:
        """Return the official ``val`` images, whose masks are public."""
        return self._masked("val", self.test_ids)

    def _masked(self, part: str, ids: Sequence[str]) -> MaskedImages:
        images, found = files(self.root / "leftImg8bit" / part, IMAGE), files(self.root / "gtFine" / part, MASK)
        return masks.pair(ids, images, found, f"complete leftImg8bit/{part} and gtFine/{part} in {self.root}")


def find(folder: Path) -> CityscapesFolder:
    """Find Cityscapes in ``folder``, which must hold leftImg8bit and gtFine."""
    for name in ("leftImg8bit", "gtFine"):
        if not (folder / name).is_dir():
            raise DataError(f"no Cityscapes in {folder}: {name} is missing; {_GET} or give --data DIR")
    ids = {part: tuple(files(folder / "leftImg8bit" / part, IMAGE)) for part in ("train", "val")}
    for part, names in ids.items():
        if not names:
            raise DataError(f"no images <city>/*{IMAGE} in {folder / 'leftImg8bit' / part}; {_GET}")
    return CityscapesFolder(folder, ids["train"], ids["val"])


def files(folder: Path, ending: str) -> dict[str, Path]:
    """Map ``city/stem`` to the files with this ending, sorted."""
    found = {f"{path.parent.name}/{path.name.removesuffix(ending)}": path for path in folder.glob(f"*/*{ending}")}
    return dict(sorted(found.items()))
