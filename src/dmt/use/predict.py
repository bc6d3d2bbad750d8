"""A run at work on new images: files in, a CSV out."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor, nn

from dmt import csv_tables, files, outputs
from dmt.data.folders import photo_files
from dmt.data.folders.photo_files import EXTENSIONS, Leftovers
from dmt.data.images.batches import scale
from dmt.errors import DataError
from dmt.outputs import Kind
from dmt.tasks.classification import images_per_forward

COLUMNS = ("file", "class", "probability", "margin")
KIND = Kind("a CSV of dmt predict", ",".join(COLUMNS).encode())


@dataclass(frozen=True)
class Prediction:
    """One image's class, its probability, and the lead over the second class."""

    file: str
    label: str
    probability: float
    margin: float


def find(paths: Iterable[Path]) -> list[Path]:
    """Images named, and those below folders named, in a stable order."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = list(photo_files.find(path, path, Leftovers()).values())
            if not inside:
                raise DataError(f"no images in {path}; known endings are {', '.join(sorted(EXTENSIONS))}")
            found += inside
        elif path.is_file():
            found.append(path)
        else:
            raise DataError(f"there is no file or folder {path}")
    for path in found:
        photo_files.require_utf8(path)
    return found


def read(path: Path, shape: tuple[int, int, int]) -> Tensor:
    """An image as (C, H, W) uint8: upright, gray or color as the net expects, resized to its size."""
    channels, height, width = shape
    image = Image.fromarray(photo_files.read_photo(path)).convert("L" if channels == 1 else "RGB")
    if image.size != (width, height):
        image = ImageOps.fit(image, (width, height), Image.Resampling.BILINEAR)  # the middle, as in training
    pixels = np.array(image, dtype=np.uint8).reshape(height, width, channels)
    return torch.from_numpy(pixels).permute(2, 0, 1)


@torch.no_grad()
def predict(
    net: nn.Module, paths: list[Path], shape: tuple[int, int, int], classes: tuple[str, ...]
) -> Iterable[Prediction]:
    """Predictions in the order of ``paths``."""
    device = next(net.parameters()).device
    count = images_per_forward(shape[1:], device)
    for start in range(0, len(paths), count):
        part = paths[start : start + count]
        images = scale(torch.stack([read(path, shape) for path in part]).to(device))
        best = net(images).float().softmax(1).topk(min(2, len(classes)), dim=1)
        for path, values, labels in zip(part, best.values.tolist(), best.indices.tolist(), strict=True):
            margin = values[0] - values[1] if len(values) > 1 else values[0]
            yield Prediction(str(path), classes[labels[0]], values[0], margin)


def write_csv(
    predictions: Iterable[Prediction], path: Path, *, inputs: Iterable[Path] = (), force: bool = False
) -> int:
    """All rows, or no file at all. Returns their number.

    Another file than an earlier CSV is refused unless ``force``, before the first prediction is made.
    """
    outputs.require_file(path, KIND, inputs=inputs, force=force)
    rows = [(each.file, each.label, f"{each.probability:.6f}", f"{each.margin:.6f}") for each in predictions]
    files.write(path, csv_tables.table(COLUMNS, rows))
    return len(rows)
