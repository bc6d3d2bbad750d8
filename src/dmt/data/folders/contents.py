"""A user's folder of images, once its layout is understood: what is labeled, what is not, and by which names."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

Color = tuple[int, int, int]


class Packed(Protocol):
    """An image file inside of another file, a tar file. As text it is the name of both."""

    @property
    def tar(self) -> str:
        """The path or URL of that file."""

    def read(self) -> bytes:
        """All of it; fewer bytes than there should be are an error."""


Source = Path | Packed
"""Where an image is."""


@dataclass(frozen=True)
class Photo:
    """One image file.

    Attributes:
        id: its path below the folder's root, with forward slashes: unique, and the same on every machine.
        path: where it is.
        label: number of its class, where images get labels.
        mask: its mask, where pixels get labels.
    """

    id: str
    path: Source
    label: int | None = None
    mask: Path | None = None


@dataclass(frozen=True)
class FolderContents:
    """What a folder holds.

    Attributes:
        root: the folder.
        layout: which layout was recognized, in a line for people.
        pixels: whether pixels get labels, or images.
        classes: their names, in the order of their numbers.
        labeled, unlabeled: to learn from; very many unlabeled images are not held one by one.
        validation, test: labeled photos put aside by the user; may be empty.
        colors: of masks drawn in colors, the class of each color; None for masks whose pixels are class numbers.
        palette: a color for each class, where pixels get labels.
        notes: what was noticed and decided on the way, a line each.
    """

    root: Path
    layout: str
    pixels: bool
    classes: tuple[str, ...]
    labeled: tuple[Photo, ...]
    unlabeled: Sequence[Photo]
    validation: tuple[Photo, ...] = ()
    test: tuple[Photo, ...] = ()
    colors: dict[Color, int] | None = None
    palette: tuple[Color, ...] = ()
    notes: tuple[str, ...] = ()

    def parts(self) -> Iterator[tuple[str, Sequence[Photo]]]:
        """The four parts by name."""
        yield "labeled", self.labeled
        yield "unlabeled", self.unlabeled
        yield "validation", self.validation
        yield "test", self.test
