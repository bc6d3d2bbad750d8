"""The layout of Cityscapes, for Cityscapes itself or a user's images laid out like it."""

from pathlib import Path

from dmt.data.folders.contents import FolderContents, Photo
from dmt.data.folders.photo_files import shown
from dmt.data.pixels import cityscapes
from dmt.errors import DataError

_NOTE = "masks hold the numbers of Cityscapes; its presets train as the paper does: dmt fit cityscapes-1of8 --data DIR"
_WITHOUT = ("train", "train_extra")
"""Folders of training images; those without a mask are unlabeled."""


def cityscapes_folders(root: Path) -> FolderContents | None:
    """Read the layout ``leftImg8bit`` and ``gtFine``; return None if the folder does not have it.

    Training images with a mask are labeled, those without are unlabeled, and ``val`` is the test set.
    """
    if not ((root / "leftImg8bit").is_dir() and (root / "gtFine").is_dir()):
        return None
    train = [photo for part in _WITHOUT for photo in _photos(root, part)]
    labeled = tuple(photo for photo in train if photo.mask is not None)
    unlabeled = tuple(photo for photo in train if photo.mask is None)
    if not labeled:
        raise DataError(f"no image in {shown(root / 'leftImg8bit' / 'train')} has a mask in gtFine/train; add some")
    notes = (_NOTE,) if unlabeled else (_NOTE, "every image is labeled: put images without masks into train_extra/")
    return FolderContents(
        root=root,
        layout=f"leftImg8bit/ with gtFine/, as Cityscapes: masks of {len(cityscapes.CLASSES)} classes",
        pixels=True,
        classes=cityscapes.CLASSES,
        labeled=labeled,
        unlabeled=unlabeled,
        test=tuple(photo for photo in _photos(root, "val") if photo.mask is not None),
        # number n in a file is the gray color (n, n, n); classes that are not evaluated have no label
        colors={(number, number, number): int(label) for number, label in enumerate(cityscapes.TABLE)},
        palette=cityscapes.PALETTE,
        notes=notes,
    )


def _photos(root: Path, part: str) -> list[Photo]:
    images = cityscapes.files(root / "leftImg8bit" / part, cityscapes.IMAGE)
    masks = cityscapes.files(root / "gtFine" / part, cityscapes.MASK)
    return [Photo(path.relative_to(root).as_posix(), path, mask=masks.get(id)) for id, path in images.items()]
