"""Folder layouts: one folder per class, images with masks, known data sets. Readers return None for other layouts."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dmt.data.folders import photo_colors, photo_files, shards
from dmt.data.folders.contents import FolderContents, Photo
from dmt.data.folders.photo_files import EXTENSIONS, Leftovers, shown
from dmt.data.folders.photo_pools import NOTHING_UNLABELED, Pool
from dmt.data.pixels import voc
from dmt.errors import DataError

LABELED = ("labeled", "labelled", "train")
UNLABELED = ("unlabeled", "unlabelled")
VALIDATION = ("val", "valid", "validation")
TEST = ("test",)

_VOC_ID = re.compile(r"20\d\d_\d{6}")


def child(folder: Path, *names: str) -> Path | None:
    """Return the subfolder with one of these names, ignoring case, or None."""
    found = [each for each in folders(folder) if each.name.lower() in names]
    if len(found) > 1:
        raise DataError(f"{shown(folder)} has both {shown(found[0].name)}/ and {shown(found[1].name)}/; keep one")
    return found[0] if found else None


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


def unlabeled_photos(folder: Path | None, root: Path, leftovers: Leftovers, notes: list[str]) -> Sequence[Photo]:
    """Return all images below the folder of unlabeled images; if it has shards, a `Pool` with the shards unopened."""
    if folder is not None and child(folder, "images") and child(folder, "masks"):
        notes.append(f"{shown(folder.name)}/masks was not read: its images count as unlabeled")
        folder = child(folder, "images")
    found = photo_files.find(folder, root, leftovers) if folder is not None else {}
    tars = shards.below(folder, leftovers) if folder is not None else []
    if not found and not tars:
        notes.append(NOTHING_UNLABELED)
    photos = tuple(Photo(id, path) for id, path in found.items())
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
    held = [(part, child(root, *names)) for part, names in (("validation", VALIDATION), ("test", TEST))]
    aside = {part: _known(folder, root, classes, leftovers, notes) for part, folder in held if folder is not None}
    spare = child(root, *UNLABELED)
    unlabeled = unlabeled_photos(spare, root, leftovers, notes)
    others = [spare, *(folder for part, folder in held if aside.get(part))]
    used = [f"{shown(labeled.name)}/<class>/", *(f"{shown(each.name)}/" for each in others if each is not None)]
    return FolderContents(
        root=root,
        layout=f"{several(used)}: images of {counted(classes)}",
        pixels=False,
        classes=classes,
        labeled=_numbered(found, classes),
        unlabeled=unlabeled,
        validation=aside.get("validation", ()),
        test=aside.get("test", ()),
        notes=(*notes, *leftovers.notes()),
    )


def _classes(folder: Path, root: Path, leftovers: Leftovers, notes: list[str]) -> dict[str, dict[str, Path]]:
    """Map the name of each class that has images to its images."""
    stray = _images(folder)
    if stray:
        raise DataError(
            f"{len(stray)} images are in no class folder, the first is {shown(stray[0])}; move them into one"
        )
    found = {each.name: photo_files.find(each, root, leftovers) for each in folders(folder)}
    empty = [name for name, files in found.items() if not files]
    notes += [f"{shown(folder.name)}/{shown(name)} holds no images and is not a class" for name in empty]
    return {name: files for name, files in found.items() if files}


def _known(
    folder: Path, root: Path, classes: tuple[str, ...], leftovers: Leftovers, notes: list[str]
) -> tuple[Photo, ...]:
    """Return held-out photos; refuse those of classes without labeled images."""
    if not folders(folder):
        if _images(folder):
            notes.append(
                f"{shown(folder.name)}/ has no class folders and is left out; `dmt predict` labels such images"
            )
        return ()
    found = _classes(folder, root, leftovers, notes)
    for name in found:
        if name not in classes:
            raise DataError(f"{shown(folder / name)} is a class that has no labeled images; add some or remove it")
    return _numbered(found, classes)


def _numbered(found: Mapping[str, Mapping[str, Path]], classes: tuple[str, ...]) -> tuple[Photo, ...]:
    every = [Photo(id, path, classes.index(name)) for name, files in found.items() for id, path in files.items()]
    return tuple(sorted(every, key=lambda photo: photo.id))


def _images(folder: Path) -> list[Path]:
    """Return the images directly in a folder, without subfolders."""
    inside = sorted(each for each in folder.iterdir() if each.suffix.lower() in EXTENSIONS and not each.is_dir())
    return [each for each in inside if not photo_files.hidden(each.name)]


def mask_folders(root: Path) -> FolderContents | None:
    """Read ``labeled/images``, ``labeled/masks`` and ``unlabeled/``, perhaps ``val`` and ``test`` like ``labeled``."""
    labeled = child(root, *LABELED)
    if labeled is None or not {each.name.lower() for each in folders(labeled)} & {"images", "masks"}:
        return None
    leftovers, notes = Leftovers(), list[str]()
    photos = _pairs(labeled, root, leftovers)
    if photos is None:
        if len(folders(labeled)) > 1:  # class folders, one of which is called images or masks
            return None
        raise DataError(
            f"{shown(labeled)} needs both images/ and masks/; it has only {shown(folders(labeled)[0].name)}/"
        )
    if not photos:
        raise DataError(f"{shown(labeled / 'images')} holds no images; put images there and their masks beside it")
    aside = {}
    for part, names in (("validation", VALIDATION), ("test", TEST)):
        folder = child(root, *names)
        pairs = _pairs(folder, root, leftovers) if folder is not None else ()
        if folder is not None and pairs is None:
            notes.append(f"{shown(folder.name)}/ is left out: it needs both images/ and masks/")
        aside[part] = pairs or ()
    spare = child(root, *UNLABELED)
    unlabeled = unlabeled_photos(spare, root, leftovers, notes)
    scheme = photo_colors.scheme([photo.mask for photo in photos if photo.mask], _listing(root, labeled))
    used = [f"{shown(labeled.name)}/images", f"{shown(labeled.name)}/masks"]
    used += [f"{shown(spare.name)}/"] if spare is not None else []
    return _of_masks(root, several(used), MaskPhotos(photos, unlabeled, **aside), scheme, [*notes, *leftovers.notes()])


@dataclass(frozen=True)
class MaskPhotos:
    """The four parts of a folder for segmentation."""

    labeled: tuple[Photo, ...]
    unlabeled: Sequence[Photo]
    validation: tuple[Photo, ...]
    test: tuple[Photo, ...]


def _of_masks(
    root: Path, used: str, parts: MaskPhotos, scheme: photo_colors.Scheme, notes: Iterable[str]
) -> FolderContents:
    kind = "class numbers" if scheme.colors is None else "colors"
    single = [f"there is only one class, '{shown(scheme.classes[0])}'"] if len(scheme.classes) == 1 else []
    return FolderContents(
        root=root,
        layout=f"{used}: masks in {kind} of {counted(scheme.classes)}",
        pixels=True,
        classes=scheme.classes,
        labeled=parts.labeled,
        unlabeled=parts.unlabeled,
        validation=parts.validation,
        test=parts.test,
        colors=scheme.colors,
        palette=scheme.palette,
        notes=(*notes, *scheme.notes, *single),
    )


def _listing(*places: Path) -> Path | None:
    return next((each / "classes.txt" for each in places if (each / "classes.txt").is_file()), None)


class ImageFile(NamedTuple):
    """An image or a mask."""

    id: str  # its path relative to the folder's root
    path: Path


def _stems(folder: Path, root: Path, leftovers: Leftovers) -> dict[str, ImageFile]:
    """Map the path of each file below the folder, without its ending, to the file. It links an image to its mask."""
    found: dict[str, ImageFile] = {}
    for id, path in photo_files.find(folder, root, leftovers).items():
        stem = path.relative_to(folder).with_suffix("").as_posix()
        if stem in found:
            raise DataError(
                f"{shown(found[stem].path)} and {shown(path.name)} differ only in their ending: "
                "which belongs to which mask or image? keep one"
            )
        found[stem] = ImageFile(id, path)
    return found


def _pairs(folder: Path, root: Path, leftovers: Leftovers) -> tuple[Photo, ...] | None:
    """Return images with their masks, or None if the folder lacks images/ or masks/."""
    images_folder, masks_folder = child(folder, "images"), child(folder, "masks")
    if images_folder is None or masks_folder is None:
        return None
    images, masks = (_stems(each, root, leftovers) for each in (images_folder, masks_folder))
    _complete(images, masks, "mask")
    _complete(masks, images, "image")
    return tuple(Photo(photo.id, photo.path, mask=masks[stem].path) for stem, photo in images.items())


def _complete(files: Mapping[str, ImageFile], partners: Mapping[str, ImageFile], kind: str) -> None:
    alone = [photo.path for stem, photo in files.items() if stem not in partners]
    if alone:
        raise DataError(
            f"{len(alone)} files have no {kind} of the same name, the first is {shown(alone[0])}; "
            "add what is missing or remove the file"
        )


def flat(root: Path) -> FolderContents | None:
    """Read ``images``, of which some have ``masks``; lists in ``splits`` may hold some out."""
    images, masks = child(root, "images"), child(root, "masks")
    if images is None or masks is None:
        return None
    listed = {"validation": root / "splits" / "val.txt", "test": root / "splits" / "test.txt"}
    parts, notes = _listed(root, images, [masks], listed)
    scheme = photo_colors.scheme([photo.mask for photo in parts.labeled if photo.mask], _listing(root, masks))
    return _of_masks(root, "images/ with masks/ for some", parts, scheme, notes)


def voc_folders(root: Path) -> FolderContents | None:
    """Read PASCAL VOC, or a user's images laid out like it, with ``train`` as labeled and ``val`` as test images."""
    places = (root, root / "VOC2012", root / "VOCdevkit" / "VOC2012")
    base = next((each for each in places if (each / "JPEGImages").is_dir()), None)
    masks = [base / name for name in ("SegmentationClass", "SegmentationClassAug")] if base else []
    masks = [each for each in masks if each.is_dir()]
    if base is None or not masks:
        return None
    lists = base / "ImageSets" / "Segmentation"
    parts, notes = _listed(root, base / "JPEGImages", masks, {"train": lists / "train.txt", "test": lists / "val.txt"})
    own = not all(_VOC_ID.fullmatch(Path(photo.id).stem) for photo in parts.labeled)
    if not own:
        notes.append("these are images of PASCAL VOC; `dmt fit voc-1of20 --data DIR` trains as its papers do")
    paths = [photo.mask for photo in parts.labeled if photo.mask]
    scheme = photo_colors.scheme(paths, _listing(root, base), () if own else voc.CLASSES)
    return _of_masks(root, "JPEGImages/ with SegmentationClass/, as PASCAL VOC", parts, scheme, notes)


def _listed(root: Path, folder: Path, masks: list[Path], lists: Mapping[str, Path]) -> tuple[MaskPhotos, list[str]]:
    """Divide the images of one folder by their masks and by the lists that exist; return the parts and notes."""
    leftovers, notes = Leftovers(), list[str]()
    images = _stems(folder, root, leftovers)
    drawn = {stem: mask for each in masks for stem, mask in _stems(each, root, leftovers).items()}
    _complete(drawn, images, "image")
    whole = {
        stem: Photo(photo.id, photo.path, mask=drawn[stem].path) for stem, photo in images.items() if stem in drawn
    }
    ids = {part: _ids(path, images, whole) for part, path in lists.items() if path.is_file()}
    held = [*ids.get("validation", ()), *ids.get("test", ())]
    twice = [stem for stem, count in Counter([*held, *ids.get("train", ())]).items() if count > 1]
    if twice:
        raise DataError(
            f"'{shown(twice[0])}' is listed twice in {shown(next(iter(lists.values())).parent)}; list it once"
        )
    taken = set(held)
    labeled = [stem for stem in ids.get("train") or whole if stem not in taken]
    if not labeled:
        raise DataError(f"no image in {shown(folder)} has a mask to learn from; add masks of the same names")
    taken |= set(labeled)
    unlabeled = tuple(Photo(photo.id, photo.path) for stem, photo in images.items() if stem not in taken)
    if not unlabeled:
        notes.append(NOTHING_UNLABELED)
    parts = {part: tuple(whole[stem] for stem in sorted(ids.get(part, ()))) for part in ("validation", "test")}
    return MaskPhotos(tuple(whole[stem] for stem in sorted(labeled)), unlabeled, **parts), [*notes, *leftovers.notes()]


def _ids(path: Path, images: Mapping[str, ImageFile], whole: Mapping[str, Photo]) -> list[str]:
    """Return the images of a list, whose lines are ids, file names, or start with the path of an image."""
    found, lost = list[str](), list[str]()
    for line in photo_colors.lines(path):
        tries = (line, str(Path(line).with_suffix("")), Path(line.split()[0]).stem)
        stem = next((each for each in tries if each in images), line)
        (found if stem in whole else lost).append(stem)
    if lost:
        raise DataError(
            f"{shown(path)} lists {len(lost)} without image or mask, the first is '{shown(lost[0])}'; add it"
        )
    return found
