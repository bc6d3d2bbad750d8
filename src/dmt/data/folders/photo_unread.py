"""Name the images at the top of a folder that its layout does not read: a misspelled name would go unnoticed."""

from pathlib import Path

from dmt.data.folders import photo_files, photo_layouts, phrases, shards
from dmt.data.folders.contents import FolderContents
from dmt.data.folders.photo_files import EXTENSIONS, shown
from dmt.data.folders.photo_pools import Pool

_NAMES = "labeled, unlabeled, val or test"


def notes(contents: FolderContents) -> list[str]:
    """Return one line about folders and one about images that are not read, if there are any."""
    found = []
    used, endings = _used(contents), (*EXTENSIONS, shards.ENDING)
    folders = [each.name for each in photo_layouts.folders(contents.root) if each.name not in used]
    folders = [name for name in folders if not any(note.startswith(f"{shown(name)}/ ") for note in contents.notes)]
    if photo_layouts.child(contents.root, "jpegimages"):  # in VOC's layout, it goes with SegmentationClass
        folders = [name for name in folders if name != "SegmentationObject"]
    folders = [name for name in folders if any(photo_files.ending_in(contents.root / name, endings))]
    if folders:
        what = "a folder with images is" if len(folders) == 1 else "folders with images are"
        found.append(f"{what} not read: {phrases.listed(folders)}; if you misspelled one, rename it to {_NAMES}")
    images = [each.name for each in photo_layouts.images_in(contents.root) if each.name not in used]
    if images:
        what = phrases.count(len(images), "image outside of all folders is", "images outside of all folders are")
        found.append(f"{what} not read: {phrases.listed(images)}; move them into a folder that is, or remove them")
    return found


def _used(contents: FolderContents) -> set[str]:
    """Return the names in the folder itself below which anything is read."""
    here = contents.unlabeled
    tars = here.tars if isinstance(here, Pool) else ()
    masks = [photo.mask for _, photos in contents.parts() for photo in photos if photo.mask is not None]
    tops = {photo.id.partition("/")[0] for _, photos in contents.parts() for photo in photos}
    return tops | {_top(path, contents.root) for path in (*tars, *masks)}


def _top(path: Path, root: Path) -> str:
    return path.relative_to(root).parts[0]
