"""Images in tar files, read sequentially: each tar file is read once from start to end."""

import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dmt.data.folders import shards, tar_places
from dmt.data.folders.photo_files import shown


@dataclass(frozen=True, slots=True)
class Loaded:
    """An image file from a tar file, still encoded."""

    tar: str
    name: str
    content: bytes

    def read(self) -> bytes:
        return self.content

    def __str__(self) -> str:
        return f"{self.tar}/{self.name}"


def stream(tar: str, skip: Callable[[str], None]) -> Iterator[Loaded]:
    """Yield all images of a tar file, compressed or not, in its order.

    Args:
        tar: a path or URL.
        skip: called with a message if the rest of the file cannot be read.
    """
    with tar_places.streamed(tar) as file, tar_places.reached(tar):
        try:
            with tarfile.open(fileobj=file, mode="r|*") as archive:
                for each in archive:
                    held = archive.extractfile(each) if each.isreg() and shards.is_image(each.name) else None
                    if held is not None:
                        yield Loaded(tar, each.name, held.read())
                    archive.members = []  # type: ignore[attr-defined]  # tarfile would keep all of them in memory
        except (tarfile.ReadError, EOFError, OSError) as error:
            why = " ".join(str(error).split())
            skip(f"{shown(tar)} is damaged or its end is missing ({why}): what follows is lost; put the original there")
