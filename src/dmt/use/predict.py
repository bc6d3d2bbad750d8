"""Classification of new images with a run: files or shards in, a CSV out."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor, nn

from dmt import csv_tables, files, outputs
from dmt.data import ahead
from dmt.data.folders import photo_files, shard_streams, shards, tar_places
from dmt.data.folders.contents import Photo, Source
from dmt.data.folders.photo_files import EXTENSIONS, Leftovers
from dmt.data.images.batches import scale
from dmt.errors import DataError, RunError
from dmt.outputs import Kind
from dmt.tasks.classification import images_per_forward
from dmt.use import fast_encoders

COLUMNS = ("file", "class", "probability", "margin")
KIND = Kind("a CSV of dmt predict", ",".join(COLUMNS).encode())

Result = TypeVar("Result", Tensor, np.ndarray)


@dataclass(frozen=True)
class Prediction:
    """Predicted class of one image, its probability, and its margin over the second class.

    Attributes:
        name: for an image in a shard, its name there, without that of the shard; else the same as ``file``.
        probabilities: probabilities of all classes, if they were asked for.
    """

    file: str
    label: str
    probability: float
    margin: float
    name: str = ""
    probabilities: tuple[float, ...] = ()


@dataclass(frozen=True)
class Inputs:
    """Images to predict: files, and those in shards, which are read one after another and never held all at once."""

    files: tuple[Path, ...]
    shards: tuple[str, ...] = ()

    @property
    def here(self) -> list[Path]:
        """All input files on this machine, images and shards."""
        return [*self.files, *(Path(each) for each in self.shards if not tar_places.is_url(each))]

    def photos(self, skip: Callable[[str], None]) -> Iterator[Photo]:
        """Yield all images in order; ``skip`` is called with a line about each shard that is damaged or cut short."""
        for path in self.files:
            yield Photo(str(path), path)
        for tar in self.shards:
            yield from (Photo(each.name, each) for each in shard_streams.stream(tar, skip))


def inputs(words: Iterable[str | Path]) -> Inputs:
    """Find what is named: images, folders of images or shards, tar files, URLs of such, names with ``{000..999}``."""
    images, found = list[Path](), list[str]()
    for word in tar_places.expanded(map(str, words)):
        path = Path(word)
        if tar_places.is_url(word) or shards.is_tar(path):
            found.append(word)
            continue
        inside = shards.below(path) if path.is_dir() else []
        found += map(str, inside)
        if not inside or photo_files.find(path, path, Leftovers()):
            images += find([path])
    for each in found:
        if not tar_places.is_url(each) and not Path(each).is_file():
            raise DataError(f"there is no file {each}")
    return Inputs(tuple(images), tuple(found))


def among_images(place: Path, trained_on: Path | None, words: Iterable[str], *, table: bool) -> str | None:
    """Return a note if predictions would lie among images; refuse it if training could take them for its images.

    Args:
        place: where the predictions are to be written.
        trained_on: the user's folder of images that the run was trained on.
        words: the images that are read, as for `inputs`.
        table: whether a CSV is written, not pictures or shards.
    """
    ours = outputs.folder_around(place, [] if trained_on is None else [trained_on])
    if ours is not None and not table:
        raise RunError(
            f"{place} is inside {ours}, the images that the run was trained on, and could be read as some of them; "
            f"give another --out"
        )
    if ours is not None:
        advice = "move it away if their labels are in a CSV"
        return f"{place} is inside {ours}, the images that the run was trained on; {advice}"
    read = outputs.folder_around(place, [Path(word) for word in words if not tar_places.is_url(word)])
    if read is None or not read.is_dir():
        return None
    again = "" if table else "; repeated, predict would read what it wrote"
    return f"{place} is inside {read}, whose images are read{again}"


def find(paths: Iterable[Path]) -> list[Path]:
    """Return the images that are named, and those below the folders that are named, in a stable order."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            leftovers = Leftovers()
            inside = list(photo_files.find(path, path, leftovers).values())
            if not inside:
                known = ", ".join(sorted(EXTENSIONS))
                raise DataError(f"no images in {path}; known endings are {known}{leftovers.remedy}")
            found += inside
        elif path.is_file():
            found.append(path)
        else:
            raise DataError(f"there is no file or folder {path}")
    for path in found:
        photo_files.require_utf8(path)
    return found


def read(path: Source, shape: tuple[int, int, int]) -> Tensor:
    """Return an image as (C, H, W) uint8: upright, gray or RGB as the net expects, cropped and resized to its size."""
    channels, height, width = shape
    image = Image.fromarray(photo_files.read_photo(path)).convert("L" if channels == 1 else "RGB")
    if image.size != (width, height):
        image = ImageOps.fit(image, (width, height), Image.Resampling.BILINEAR)  # center crop, as in training
    pixels = np.array(image, dtype=np.uint8).reshape(height, width, channels)
    return torch.from_numpy(pixels).permute(2, 0, 1)


def decoded(
    photos: Iterable[Photo], read: Callable[[Source], Result], skip: Callable[[str], None]
) -> Iterator[tuple[Photo, Result]]:
    """Yield images with what ``read`` returns for them. A file that cannot be read is an error; in a shard, skip it."""

    def attempt(photo: Photo) -> tuple[Photo, Result | DataError]:
        try:
            return photo, read(photo.path)
        except DataError as error:
            if isinstance(photo.path, Path):
                raise
            return photo, error

    for photo, found in ahead.results(attempt, photos):
        if isinstance(found, DataError):
            skip(str(found))
        else:
            yield photo, found


@torch.no_grad()
def predict(
    net: nn.Module,
    images: Iterable[tuple[Photo, Tensor]],
    classes: tuple[str, ...],
    *,
    whole: bool = False,
    expected: int = 0,
) -> Iterator[Prediction]:
    """Yield predictions in the order of the images, of which one batch is held at a time.

    Args:
        net: the net, on its device.
        images: images as `read` returns them, all of one shape.
        classes: names of the classes.
        whole: include the probabilities of all classes.
        expected: number of images, 0 if unknown; for many, a faster encoder is prepared.
    """
    device = next(net.parameters()).device
    rest, ready = iter(images), False
    while first := next(rest, None):
        if not ready:
            channels, height, width = first[1].shape
            net, ready = fast_encoders.for_many(net, (channels, height, width), expected), True
        count = images_per_forward(tuple(first[1].shape[1:]), device)
        part = [first, *itertools.islice(rest, count - 1)]
        probabilities = net(scale(torch.stack([image for _, image in part]).to(device))).float().softmax(1)
        best = probabilities.topk(min(2, len(classes)), dim=1)
        every = probabilities.tolist() if whole else [()] * len(part)
        for (photo, _), values, labels, all_ in zip(
            part, best.values.tolist(), best.indices.tolist(), every, strict=True
        ):
            margin = values[0] - values[1] if len(values) > 1 else values[0]
            yield Prediction(str(photo.path), classes[labels[0]], values[0], margin, photo.id, tuple(all_))


def write_csv(
    predictions: Iterable[Prediction], path: Path, *, inputs: Iterable[Path] = (), force: bool = False
) -> int:
    """Write all predictions as a CSV, or no file at all if one fails, and return their number.

    To overwrite any file but an earlier CSV is refused unless ``force``, before the first prediction is made.
    """
    outputs.require_file(path, KIND, inputs=inputs, force=force)
    count = -1
    rows = ((each.file, each.label, f"{each.probability:.6f}", f"{each.margin:.6f}") for each in predictions)
    with files.writing(path) as file:
        for count, line in enumerate(csv_tables.lines(COLUMNS, rows)):  # noqa: B007
            file.write(line)
    return count
