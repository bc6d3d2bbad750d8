"""The flat layout: folders ``images``, ``masks`` and ``splits``, and a file ``classes.txt``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dmt.data.pixels import class_lists, masks
from dmt.data.pixels.masks import MaskedImages
from dmt.errors import DataError

ENDINGS = frozenset((".bmp", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"))


@dataclass(frozen=True)
class FlatFolder:
    """A data set in the flat layout.

    Attributes:
        root: the folder that holds ``images/<id>.*`` and ``masks/<id>.png``.
        classes: names of the classes, ordered by their numbers in the masks.
        splits: maps the name of each list ``splits/<name>.txt`` to its ids.
    """

    root: Path
    classes: tuple[str, ...]
    splits: Mapping[str, tuple[str, ...]]

    def masked(self, ids: Sequence[str]) -> MaskedImages:
        """Return the images and masks of these ids."""
        found = {path.stem: path for path in (self.root / "masks").glob("*.png")}
        remedy = f"put them into {self.root} as images/<id>.jpg and masks/<id>.png or take them off the lists in splits"
        return masks.pair(ids, _images(self.root / "images"), found, remedy)

    def split(self, name: str) -> MaskedImages:
        """Return the images and masks of a list."""
        if name not in self.splits:
            raise DataError(f"{self.root / 'splits'} has no {name}.txt; write the ids of its images there, one a line")
        return self.masked(self.splits[name])


def open_folder(folder: Path) -> FlatFolder:
    """Read the class names and lists of a folder, without opening images or masks."""
    for name in ("images", "masks", "splits"):
        if not (folder / name).is_dir():
            raise DataError(f"{folder} has no folder {name}; it must hold images, masks, splits and classes.txt")
    lists = {path.stem: _ids(path) for path in sorted((folder / "splits").glob("*.txt"))}
    if not lists:
        raise DataError(
            f"{folder / 'splits'} has no *.txt; write the ids of training and test images there, one a line"
        )
    return FlatFolder(folder, _classes(folder / "classes.txt"), lists)


def _ids(path: Path) -> tuple[str, ...]:
    ids = class_lists.lines(path)
    if not ids:
        raise DataError(f"{path} is empty; write the ids of its images there, one a line")
    seen: set[str] = set()
    for each in ids:
        if each in seen:
            raise DataError(f"{path} lists '{each}' twice; list every image once")
        seen.add(each)
    return tuple(ids)


def _classes(path: Path) -> tuple[str, ...]:
    """Read the names of the classes. Colors, if the file has them, are not needed: masks hold numbers here."""
    if not path.is_file():
        raise DataError(f"{path} is missing; write the names of the classes there, one a line")
    names, _ = class_lists.read_classes(path)
    return names


def _images(folder: Path) -> dict[str, Path]:
    """Map the id of each image to its file."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in ENDINGS and not path.name.startswith("."):
            if path.stem in found:
                raise DataError(f"{found[path.stem]} and {path.name} have one id, '{path.stem}'; keep one of them")
            found[path.stem] = path
    return found
