"""The contents of a user's folder once its layout is recognized: labeled and unlabeled images, and the classes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dmt.data.pixels.palettes import Color


class Packed(Protocol):
    """An image file inside a tar file. Its text form names both files."""

    @property
    def tar(self) -> str:
        """The path or URL of the tar file."""

    def read(self) -> bytes:
        """Read all bytes of the image file; raise an error if some are missing."""


Source = Path | Packed
"""Where an image is stored."""


@dataclass(frozen=True)
class Photo:
    """One image file.

    Attributes:
        id: its path relative to the folder's root, with forward slashes: unique, and the same on every machine.
        path: where it is stored.
        label: number of its class, in classification.
        mask: its mask file, in segmentation.
    """

    id: str
    path: Source
    label: int | None = None
    mask: Path | None = None


@dataclass(frozen=True)
class FolderContents:
    """The contents of a user's folder.

    Attributes:
        root: the folder.
        layout: the recognized layout, described in one line.
        pixels: whether pixels get labels (segmentation) or images (classification).
        classes: names of the classes, in the order of their numbers.
        labeled, unlabeled: photos to learn from; very many unlabeled ones are a lazy sequence.
        validation, test: labeled photos that the user held out; may be empty.
        colors: the class of each color, if masks are drawn in colors; None if their pixels are class numbers.
        palette: a color for each class, in segmentation.
        notes: what was noticed and decided while reading the folder, one line each.
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
        """Yield the name and photos of each of the four parts."""
        yield "labeled", self.labeled
        yield "unlabeled", self.unlabeled
        yield "validation", self.validation
        yield "test", self.test
