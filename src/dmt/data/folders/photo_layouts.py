"""The layout of one folder per class, and what other layouts share with it."""

import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path

from dmt.data.folders import photo_files, shards
from dmt.data.folders.contents import FolderContents, Photo
from dmt.data.folders.photo_files import EXTENSIONS, Leftovers, shown
from dmt.data.folders.photo_pools import Pool
from dmt.errors import DataError

LABELED = ("labeled", "labelled", "train")
UNLABELED = ("unlabeled", "unlabelled")
VALIDATION = ("val", "valid", "validation")
TEST = ("test",)


def child(folder: Path, *names: str) -> Path | None:
    """Return the subfolder with one of these names, ignoring case, or None."""
    found = [each for each in folders(folder) if each.name.lower() in names]
    if len(found) > 1:
        raise DataError(f"{shown(folder)} has both {shown(found[0].name)}/ and {shown(found[1].name)}/; keep one")
    return found[0] if found else None


def held_out(root: Path) -> dict[str, Path]:
    """Return the folders of validation and test images that exist, by the name of their part."""
    held = {"validation": child(root, *VALIDATION), "test": child(root, *TEST)}
    return {part: folder for part, folder in held.items() if folder is not None}


def folders(folder: Path) -> list[Path]:
    """Return subfolders and links to folders, sorted, without hidden ones and links to the folder or its parents."""
    try:
        with os.scandir(folder) as entries:  # unlike Path.is_dir, needs no disk access per file
            likely = [folder / each.name for each in entries if each.is_symlink() or each.is_dir()]
        found = sorted(each for each in likely if each.is_dir() and not photo_files.hidden(each.name))
    except OSError as error:
        raise DataError(f"cannot list the folder {shown(folder)} ({error.strerror}); allow reading it") from error
    here = folder.resolve()
    return [each for each in found if not (each.is_symlink() and here.is_relative_to(each.resolve()))]


def natural(name: str) -> tuple[list[str | int], str]:
    """Return a sort key for natural order: case is ignored, and numbers are sorted by value."""
    parts = re.split(r"([0-9]+)", name)
    return [int(part) if place % 2 else part.casefold() for place, part in enumerate(parts)], name


def several(names: list[str]) -> str:
    """Join names as "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def counted(classes: tuple[str, ...]) -> str:
    """Return the number of classes as text: "1 class", "2 classes"."""
    return f"{len(classes)} class{'es' * (len(classes) != 1)}"


def unlabeled_photos(
    folder: Path | None, root: Path, leftovers: Leftovers, notes: list[str], others: Sequence[Photo] = ()
) -> Sequence[Photo]:
    """Return other unlabeled images and all below a folder; if it has shards, a `Pool` with the shards unopened."""
    if folder is not None and child(folder, "images") and child(folder, "masks"):
        notes.append(f"{shown(folder.name)}/masks was not read: its images count as unlabeled")
        folder = child(folder, "images")
    found = photo_files.find(folder, root, leftovers) if folder is not None else {}
    tars = shards.below(folder, leftovers) if folder is not None else []
    photos = (*others, *(Photo(id, path) for id, path in found.items()))
    return Pool(photos, tuple(tars)) if tars else photos


def class_folders(root: Path) -> FolderContents | None:
    """Read ``labeled/<class>/`` and ``unlabeled/``, perhaps ``val/<class>/`` and ``test/<class>/``."""
    labeled = child(root, *LABELED)
    if labeled is None or not folders(labeled):
        return None
    leftovers, notes = Leftovers(), list[str]()
    found = _classes(labeled, root, leftovers, notes)
    if not found:
        raise DataError(f"{shown(labeled)} holds no images{leftovers.remedy}; put some into {shown(labeled)}/<class>/")
    classes = tuple(sorted(found, key=natural))
    if len(classes) == 1:
        notes.append(f"there is only one class, '{shown(classes[0])}'")
    held = held_out(root)
    aside = {part: known(folder, root, classes, leftovers, notes) for part, folder in held.items()}
    spare = child(root, *UNLABELED)
    unlabeled = unlabeled_photos(spare, root, leftovers, notes)
    others = [spare, *(folder for part, folder in held.items() if aside[part])]
    used = [f"{shown(labeled.name)}/<class>/", *(f"{shown(each.name)}/" for each in others if each is not None)]
    return FolderContents(
        root=root,
        layout=f"{several(used)}: images of {counted(classes)}",
        pixels=False,
        classes=classes,
        labeled=_numbered(found, {name: label for label, name in enumerate(classes)}),
        unlabeled=unlabeled,
        validation=aside.get("validation", ()),
        test=aside.get("test", ()),
        notes=(*notes, *leftovers.notes()),
    )


def _classes(folder: Path, root: Path, leftovers: Leftovers, notes: list[str]) -> dict[str, dict[str, Path]]:
    """Map the name of each class that has images to its images."""
    stray = images_in(folder)
    if stray:
        raise DataError(
            f"{len(stray)} images are in no class folder, the first is {shown(stray[0])}; move them into one"
        )
    found = {each.name: photo_files.find(each, root, leftovers) for each in folders(folder)}
    empty = [name for name, files in found.items() if not files]
    notes += [f"{shown(folder.name)}/{shown(name)} holds no images and is not a class" for name in empty]
    return {name: files for name, files in found.items() if files}


def known(
    folder: Path, root: Path, classes: tuple[str, ...], leftovers: Leftovers, notes: list[str]
) -> tuple[Photo, ...]:
    """Return the photos in the class folders of ``val/`` or ``test/``; refuse classes without labeled images."""
    if not folders(folder):
        if images_in(folder):
            notes.append(
                f"{shown(folder.name)}/ has no class folders and is left out; `dmt predict` labels such images"
            )
        return ()
    found = _classes(folder, root, leftovers, notes)
    numbers = {unicodedata.normalize("NFC", name): label for label, name in enumerate(classes)}
    labels = {name: numbers.get(unicodedata.normalize("NFC", name)) for name in found}  # accents are stored in two ways
    for name, label in labels.items():
        if label is None:
            raise DataError(f"{shown(folder / name)} is a class that has no labeled images; add some or remove it")
    return _numbered(found, labels)


def _numbered(found: Mapping[str, Mapping[str, Path]], labels: Mapping[str, int | None]) -> tuple[Photo, ...]:
    every = [Photo(id, path, labels[name]) for name, files in found.items() for id, path in files.items()]
    return tuple(sorted(every, key=lambda photo: photo.id))


def images_in(folder: Path) -> list[Path]:
    """Return the images directly in a folder, without subfolders."""
    inside = sorted(each for each in folder.iterdir() if each.suffix.lower() in EXTENSIONS and not each.is_dir())
    return [each for each in inside if not photo_files.hidden(each.name)]
