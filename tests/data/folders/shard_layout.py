"""Tar files of images, as WebDataset has them."""

import io
import tarfile
from collections.abc import Iterable
from pathlib import Path


def write_tar(path: Path, members: Iterable[tuple[str, bytes]]) -> Path:
    """A tar file with these members, in this order."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as archive:
        for name, content in members:
            about = tarfile.TarInfo(name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    return path


def pack(folder: Path, *sizes: int) -> list[Path]:
    """Move the images of a folder, in the order of their names, into tar files of so many each, the rest into one."""
    images = sorted(each for each in folder.iterdir() if each.is_file())
    found = []
    for number, size in enumerate([*sizes, len(images)]):
        part, images = images[:size], images[size:]
        members = [(each.name, each.read_bytes()) for each in part]
        found.append(write_tar(folder / f"{number:03d}.tar", members))
        for each in part:
            each.unlink()
    return found
