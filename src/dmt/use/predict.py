"""Classification of new images with a run, and the CSV of their classes."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor, nn

from dmt import csv_tables, files, outputs
from dmt.data.folders import photo_files
from dmt.data.folders.contents import Photo, Source
from dmt.data.images.batches import scale
from dmt.outputs import Kind
from dmt.tasks.classification import images_per_forward
from dmt.use import fast_encoders

COLUMNS = ("file", "class", "probability", "margin")
KIND = Kind("a CSV of dmt predict", ",".join(COLUMNS).encode())


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


def read(path: Source, shape: tuple[int, int, int]) -> Tensor:
    """Return an image as (C, H, W) uint8: upright, gray or RGB as the net expects, cropped and resized to its size."""
    channels, height, width = shape
    image = Image.fromarray(photo_files.read_photo(path)).convert("L" if channels == 1 else "RGB")
    if image.size != (width, height):
        image = ImageOps.fit(image, (width, height), Image.Resampling.BILINEAR)  # center crop, as in training
    pixels = np.array(image, dtype=np.uint8).reshape(height, width, channels)
    return torch.from_numpy(pixels).permute(2, 0, 1)


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
