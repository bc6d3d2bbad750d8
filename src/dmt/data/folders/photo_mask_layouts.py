"""Folder layouts of images with masks, PASCAL VOC among them. Readers return None for other layouts."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dmt.data.folders import photo_colors, photo_files, photo_layouts
from dmt.data.folders.contents import FolderContents, Photo
from dmt.data.folders.photo_files import Leftovers, shown
from dmt.data.pixels import class_lists, voc
from dmt.errors import DataError

_VOC_ID = re.compile(r"20\d\d_\d{6}")


def mask_folders(root: Path) -> FolderContents | None:
    """Read ``labeled/images``, ``labeled/masks`` and ``unlabeled/``, perhaps ``val`` and ``test`` like ``labeled``."""
    labeled = photo_layouts.child(root, *photo_layouts.LABELED)
    if labeled is None or not {each.name.lower() for each in photo_layouts.folders(labeled)} & {"images", "masks"}:
        return None
    leftovers, notes = Leftovers(), list[str]()
    photos = _pairs(labeled, root, leftovers)
    if photos is None:
        if len(photo_layouts.folders(labeled)) > 1:  # class folders, one of which is called images or masks
            return None
        (only,) = photo_layouts.folders(labeled)
        raise DataError(f"{shown(labeled)} needs both images/ and masks/; it has only {shown(only.name)}/")
    if not photos:
        raise DataError(f"{shown(labeled / 'images')} holds no images; put images there and their masks beside it")
    aside = _held_out(root, leftovers, notes)
    spare = photo_layouts.child(root, *photo_layouts.UNLABELED)
    unlabeled = photo_layouts.unlabeled_photos(spare, root, leftovers, notes)
    scheme = photo_colors.scheme([photo.mask for photo in photos if photo.mask], _listing(root, labeled))
    used = [f"{shown(labeled.name)}/images", f"{shown(labeled.name)}/masks"]
    used += [f"{shown(spare.name)}/"] if spare is not None else []
    parts = MaskPhotos(photos, unlabeled, aside.get("validation", ()), aside.get("test", ()))
    return _of_masks(root, photo_layouts.several(used), parts, scheme, [*notes, *leftovers.notes()])


def _held_out(root: Path, leftovers: Leftovers, notes: list[str]) -> dict[str, tuple[Photo, ...]]:
    """Return the images with masks in ``val/`` and ``test/``, by the name of their part, for folders that have both."""
    found = {}
    for part, folder in photo_layouts.held_out(root).items():
        pairs = _pairs(folder, root, leftovers)
        if pairs is None:
            notes.append(f"{shown(folder.name)}/ is left out: it needs both images/ and masks/")
        else:
            found[part] = pairs
    return found


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
        layout=f"{used}: masks in {kind} of {photo_layouts.counted(scheme.classes)}",
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
    """Return the file that names the classes; ``labelmap.txt`` is that of CVAT's export."""
    files = (each / name for name in ("classes.txt", "labelmap.txt") for each in places)
    return next((each for each in files if each.is_file()), None)


class ImageFile(NamedTuple):
    """An image or a mask."""

    id: str  # its path relative to the folder's root
    path: Path


def _stems(folder: Path, root: Path, leftovers: Leftovers) -> dict[str, ImageFile]:
    """Map the path of each file below the folder, without its ending, to the file. It links an image to its mask.

    The path is normalized: macOS, for example, may store é as e and an accent.
    """
    found: dict[str, ImageFile] = {}
    for id, path in photo_files.find(folder, root, leftovers).items():
        stem = unicodedata.normalize("NFC", path.relative_to(folder).with_suffix("").as_posix())
        if stem in found:
            raise DataError(
                f"{shown(found[stem].path)} and {shown(path.name)} differ only in their ending: "
                "which belongs to which mask or image? keep one"
            )
        found[stem] = ImageFile(id, path)
    return found


def _pairs(folder: Path, root: Path, leftovers: Leftovers) -> tuple[Photo, ...] | None:
    """Return images with their masks, or None if the folder lacks images/ or masks/."""
    images_folder, masks_folder = photo_layouts.child(folder, "images"), photo_layouts.child(folder, "masks")
    if images_folder is None or masks_folder is None:
        return None
    images, masks = (_stems(each, root, leftovers) for each in (images_folder, masks_folder))
    _complete(images, masks, "mask")
    _complete(masks, images, "image")
    return tuple(Photo(photo.id, photo.path, mask=masks[stem].path) for stem, photo in images.items())


def _complete(files: Mapping[str, ImageFile], partners: Mapping[str, ImageFile], kind: str) -> None:
    alone = [photo.path for stem, photo in files.items() if stem not in partners]
    if alone:
        remedy = _renamed(files, partners) or "add what is missing or remove the file"
        raise DataError(f"{len(alone)} files have no {kind} of the same name, the first is {shown(alone[0])}; {remedy}")


def _renamed(files: Mapping[str, ImageFile], partners: Mapping[str, ImageFile]) -> str | None:
    """Say which ending to remove from names if that would pair all of them, as with ``a.jpg`` and ``a_mask.png``."""
    for longer, shorter in ((files, partners), (partners, files)):
        first = next(iter(longer), "")
        for end in (first.removeprefix(stem) for stem in shorter if first.startswith(stem) and first != stem):
            if all(name.endswith(end) and name.removesuffix(end) in shorter for name in longer):
                return f"remove '{shown(end)}' from the end of the names in {shown(longer[first].path.parent)}"
    return None


def flat(root: Path) -> FolderContents | None:
    """Read ``images``, of which some have ``masks``, perhaps with ``unlabeled``, ``val`` and ``test``.

    Lists in ``splits`` may hold some of the images out, too.
    """
    images, masks = photo_layouts.child(root, "images"), photo_layouts.child(root, "masks")
    if images is None or masks is None:
        return None
    leftovers, notes = Leftovers(), list[str]()
    listed = {"validation": root / "splits" / "val.txt", "test": root / "splits" / "test.txt"}
    parts, beside = _with_folders(root, _listed(root, images, [masks], listed, leftovers), leftovers, notes)
    scheme = photo_colors.scheme([photo.mask for photo in parts.labeled if photo.mask], _listing(root, masks))
    used = photo_layouts.several(["images/ with masks/ for some", *beside])
    return _of_masks(root, used, parts, scheme, [*notes, *leftovers.notes()])


def _with_folders(
    root: Path, parts: MaskPhotos, leftovers: Leftovers, notes: list[str]
) -> tuple[MaskPhotos, list[str]]:
    """Add what lies in ``unlabeled``, ``val`` and ``test``; return the folders of these that are read, too."""
    aside = _held_out(root, leftovers, notes)
    spare = photo_layouts.child(root, *photo_layouts.UNLABELED)
    whole = MaskPhotos(
        parts.labeled,
        photo_layouts.unlabeled_photos(spare, root, leftovers, notes, parts.unlabeled),
        (*parts.validation, *aside.get("validation", ())),
        (*parts.test, *aside.get("test", ())),
    )
    used = [] if spare is None else [f"{shown(spare.name)}/"]
    used += [f"{shown(folder.name)}/" for part, folder in photo_layouts.held_out(root).items() if aside.get(part)]
    return whole, used


def voc_folders(root: Path) -> FolderContents | None:
    """Read PASCAL VOC, or a user's images laid out like it, with ``train`` as labeled and ``val`` as test images.

    Beside a user's, as annotation tools export them, ``unlabeled``, ``val`` and ``test`` are read as in `flat`.
    """
    places = (root, root / "VOC2012", root / "VOCdevkit" / "VOC2012")
    base = next((each for each in places if (each / "JPEGImages").is_dir()), None)
    masks = [base / name for name in ("SegmentationClass", "SegmentationClassAug")] if base else []
    masks = [each for each in masks if each.is_dir()]
    if base is None or not masks:
        return None
    lists = base / "ImageSets" / "Segmentation"
    leftovers = Leftovers()
    listed = {"train": lists / "train.txt", "test": lists / "val.txt"}
    parts = _listed(root, base / "JPEGImages", masks, listed, leftovers)
    own = not all(_VOC_ID.fullmatch(Path(photo.id).stem) for photo in parts.labeled)
    notes, used = list[str](), ["JPEGImages/ with SegmentationClass/, as PASCAL VOC"]
    if own:
        parts, beside = _with_folders(root, parts, leftovers, notes)
        used += beside
    notes += leftovers.notes()
    if not own:
        notes.append("these are images of PASCAL VOC; `dmt fit voc-1of20 --data DIR` trains as its papers do")
    paths = [photo.mask for photo in parts.labeled if photo.mask]
    scheme = photo_colors.scheme(paths, _listing(root, base), () if own else voc.CLASSES)
    return _of_masks(root, photo_layouts.several(used), parts, scheme, notes)


def _listed(root: Path, folder: Path, masks: list[Path], lists: Mapping[str, Path], leftovers: Leftovers) -> MaskPhotos:
    """Divide the images of one folder by their masks and by the lists that exist."""
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

    def ordered(stems: Iterable[str]) -> tuple[Photo, ...]:
        return tuple(
            sorted((whole[stem] for stem in stems), key=lambda photo: Path(photo.id).with_suffix("").as_posix())
        )

    return MaskPhotos(ordered(labeled), unlabeled, ordered(ids.get("validation", ())), ordered(ids.get("test", ())))


def _ids(path: Path, images: Mapping[str, ImageFile], whole: Mapping[str, Photo]) -> list[str]:
    """Return the images of a list, whose lines are ids, file names, or start with the path of an image."""
    found, lost = list[str](), list[str]()
    for line in class_lists.lines(path):
        line = unicodedata.normalize("NFC", line)
        tries = (line, str(Path(line).with_suffix("")), Path(line.split()[0]).stem)
        stem = next((each for each in tries if each in images), line)
        (found if stem in whole else lost).append(stem)
    if lost:
        raise DataError(
            f"{shown(path)} lists {len(lost)} without image or mask, the first is '{shown(lost[0])}'; add it"
        )
    return found
