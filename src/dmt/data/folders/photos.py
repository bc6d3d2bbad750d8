"""Open a user's folder of images, in any of the known layouts."""

import dataclasses
import posixpath
from collections.abc import Iterable, Sequence
from pathlib import Path

from dmt.data.folders import (
    photo_cityscapes,
    photo_files,
    photo_layouts,
    photo_mask_layouts,
    photo_pools,
    photo_tables,
    photo_unread,
    phrases,
)
from dmt.data.folders.contents import FolderContents
from dmt.data.folders.photo_files import EXTENSIONS, Leftovers, shown
from dmt.data.folders.photo_pools import Pool
from dmt.errors import DataError

LAYOUTS = (
    "labeled/<class>/ with unlabeled/; images with labels.csv (file,label); "
    "labeled/images and labeled/masks with unlabeled/; images/ with masks/; PASCAL VOC; Cityscapes"
)

_PARTS = frozenset({
    *photo_layouts.LABELED, *photo_layouts.UNLABELED, *photo_layouts.VALIDATION, *photo_layouts.TEST,
    "images", "masks", "splits",
})  # fmt: skip


def open_folder(folder: Path, urls: Sequence[str] = (), cache: Path | None = None) -> FolderContents:
    """Recognize the layout of a folder, reading names, tables, labeled masks and the headers of shards.

    Args:
        folder: the folder.
        urls: further shards of unlabeled images outside of the folder.
        cache: folder for the index of images in shards; if None, nothing is written.
    """
    return photo_pools.opened(_understood(folder), urls, cache)


def open_labeled(folder: Path) -> FolderContents:
    """Recognize the layout of a folder, leaving out its unlabeled images; their shards are not opened."""
    return dataclasses.replace(_understood(folder), unlabeled=())


def _understood(folder: Path) -> FolderContents:
    if not folder.exists():
        raise DataError(f"there is no folder {shown(folder)}; give the folder that holds the images")
    if not folder.is_dir():
        raise DataError(f"{shown(folder)} is a file; give the folder that holds the images")
    contents = _recognized(folder)
    notes = [] if contents.unlabeled or isinstance(contents.unlabeled, Pool) else [photo_pools.NOTHING_UNLABELED]
    return dataclasses.replace(contents, notes=(*contents.notes, *notes, *photo_unread.notes(contents)))


def _recognized(folder: Path) -> FolderContents:
    """Read a folder by the first layout that fits."""
    by_folders = (
        photo_cityscapes.cityscapes_folders,
        photo_mask_layouts.voc_folders,
        photo_mask_layouts.mask_folders,
        photo_layouts.class_folders,
        photo_mask_layouts.flat,
    )
    for layout in by_folders:
        contents = layout(folder)
        if contents is not None and (folder / "labels.csv").is_file():
            return dataclasses.replace(
                contents, notes=(*contents.notes, "labels.csv was not read: the folders give all labels")
            )
        if contents is not None:
            return contents
    leftovers = Leftovers()
    found = photo_files.find(folder, folder, leftovers)
    table = photo_tables.path(folder) if found else None
    if table is None:
        raise DataError(_unknown(folder, found, leftovers))
    return photo_tables.contents(folder, table, found, leftovers)


def _unknown(folder: Path, found: dict[str, Path], leftovers: Leftovers) -> str:
    """Explain in one line why no layout fits."""
    if not found:
        seen = f"{shown(folder)} holds no images ({', '.join(sorted(EXTENSIONS))}){leftovers.remedy}"
    else:
        places = len({posixpath.dirname(id) for id in found})
        images, where = phrases.count(len(found), "image"), phrases.count(places, "folder")
        labeled = photo_layouts.child(folder, *photo_layouts.LABELED)
        lacks = "no labeled/" if labeled is None else f"no class folders in {shown(labeled.name)}/"
        seen = f"{shown(folder)}: found {images} in {where} but {lacks} and no CSV"
    if polygons := sum(leftovers.endings[each] for each in (".json", ".xml")):
        what = phrases.count(polygons, "JSON or XML file is", "JSON or XML files are")
        seen += f"; {what} not read: if annotations such as polygons are in there, export masks as PNG"
    for inner in photo_layouts.folders(folder):
        if photo_layouts.child(inner, *photo_layouts.LABELED) is not None:
            return f"{seen}; did you mean {shown(inner)}?"
    classes = _class_folders(folder, found)
    if classes:
        named = phrases.enough(map(phrases.quoted, classes))
        remedy = f"move the {len(classes)} class folders ({named}) into {shown(folder / 'labeled')}/"
        return f"{seen}; if its folders are classes, {remedy}"
    return f"{seen}; known layouts: {LAYOUTS}"


def _class_folders(folder: Path, found: Iterable[str]) -> list[str]:
    """Return the folders that may be classes: two or more that hold images, with no image outside of them."""
    tops = {id.partition("/")[0] if "/" in id else "" for id in found}
    tops = {name for name in tops if name.lower() not in _PARTS}
    return [] if "" in tops or len(tops) < 2 else sorted(tops, key=photo_layouts.natural)
