"""Segmentation of new images with a run: files or shards in, masks and overlays out."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional as F

from dmt import csv_tables, files, outputs, pictures
from dmt.data.folders import photo_sets
from dmt.data.folders.contents import Photo
from dmt.data.images.batches import scale
from dmt.data.pixels import palettes
from dmt.errors import DataError
from dmt.outputs import Kind
from dmt.types import PADDING
from dmt.use import predict_shards
from dmt.use.predict_shards import Sample
from dmt.use.scoring import Shipped

COLUMNS = ("value", "class", "red", "green", "blue")
LEGEND = Kind("a legend of dmt predict", ",".join(COLUMNS).encode())


def write(
    shipped: Shipped,
    images: Iterable[tuple[Photo, np.ndarray]],
    out: Path,
    on_progress: Callable[[int], None],
    *,
    force: bool = False,
) -> int:
    """Write masks, overlays and a legend below ``out``, and return the number of images.

    A folder that already holds masks or overlays is refused unless ``force``: masks may have been drawn by hand.
    """
    if out.is_file():
        raise DataError(f"{out} is a file; give a folder for masks and overlays")
    for name in ("masks", "overlays"):
        if not force and (out / name).is_dir() and any((out / name).iterdir()):
            raise DataError(f"{out / name} is not empty; give another --out, or --force to overwrite it")
    write_legend(shipped, out, force=force)
    taken: set[str] = set()
    done = 0
    for done, (photo, image) in enumerate(images, start=1):
        mask = palettes.indexed(label(shipped, image), shipped.palette)
        name = _name(photo, taken)
        files.write(out / "masks" / f"{name}.png", pictures.encode(mask))
        files.write(out / "overlays" / f"{name}.png", pictures.encode(overlay(image, mask)))
        on_progress(done)
    return done


def samples(shipped: Shipped, images: Iterable[tuple[Photo, np.ndarray]]) -> Iterator[Sample]:
    """Yield the mask of each image as a sample of a shard."""
    for photo, image in images:
        mask = palettes.indexed(label(shipped, image), shipped.palette)
        yield predict_shards.key(photo.id), {"mask.png": pictures.encode(mask)}


def write_legend(shipped: Shipped, out: Path, *, force: bool = False) -> None:
    """Write the names and colors of the classes to ``classes.csv`` in a folder."""
    outputs.require_file(out / "classes.csv", LEGEND, force=force)
    files.write(out / "classes.csv", _legend(shipped))


@torch.no_grad()
def label(shipped: Shipped, image: np.ndarray) -> np.ndarray:
    """Return the class of every pixel of an image (H, W, 3), as (H, W) uint8."""
    native = image.shape[:2]
    height, width = native if shipped.longest is None else photo_sets.limited(native, shipped.longest)
    if (height, width) != native:
        image = np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR))
    device = next(shipped.net.parameters()).device
    planes = scale(torch.from_numpy(image.copy()).permute(2, 0, 1)[None].to(device))
    padded: Tensor = F.pad(planes, (0, -width % PADDING, 0, -height % PADDING))
    logits = shipped.net(padded)[:, :, :height, :width].float()
    if (height, width) != native:
        logits = F.interpolate(logits, native, mode="bilinear", align_corners=False)
    labels: np.ndarray = logits[0].argmax(0).to(torch.uint8).cpu().numpy()
    return labels


def overlay(image: np.ndarray, mask: Image.Image) -> Image.Image:
    """Return the image blended with the colors of its classes; background, class 0, is left as it is."""
    colors, labels = np.asarray(mask.convert("RGB")), np.asarray(mask)
    mixed = (image.astype(np.float32) + colors) / 2
    return Image.fromarray(np.where(labels[..., None] == 0, image, mixed.astype(np.uint8)))


def _name(photo: Photo, taken: set[str]) -> str:
    """Return the stem of the photo's name, with a number appended if it is taken already."""
    stem = Path(photo.id).stem
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    taken.add(name)
    return name


def _legend(shipped: Shipped) -> bytes:
    rows = ((number, name, *shipped.palette[number]) for number, name in enumerate(shipped.classes))
    return csv_tables.table(COLUMNS, rows)
