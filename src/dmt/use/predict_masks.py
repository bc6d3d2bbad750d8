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
from dmt.use import mask_table, predict_inputs, predict_places, predict_shards
from dmt.use.mask_table import MASKS, OVERLAYS
from dmt.use.predict_shards import Sample
from dmt.use.scoring import Shipped

COLUMNS = ("value", "class", "red", "green", "blue")
LEGEND = "classes.csv"
LEGEND_KIND = Kind("a legend of dmt predict", ",".join(COLUMNS).encode())


def write(
    shipped: Shipped,
    images: Iterable[tuple[Photo, np.ndarray]],
    out: Path,
    on_progress: Callable[[int], None],
    *,
    folders: Iterable[Path] = (),
    force: bool = False,
) -> int:
    """Write masks, overlays, a legend and a table of the masks below ``out``, and return the number of images.

    A folder that already holds masks or overlays is refused unless ``force``: masks may have been drawn by hand. With
    it, those that the table of an earlier call names are removed first.

    Args:
        shipped: the net or nets.
        images: the images. If none can be read, nothing is changed.
        out: the folder.
        on_progress: called with the number of images done.
        folders: the folders that images were found in; masks keep their places below them.
        force: replace what an earlier call wrote.
    """
    _require_room(out, force)
    images = predict_inputs.begun(images)
    mask_table.remove_earlier(out)
    write_legend(shipped, out, force=force)
    rows: list[tuple[str, str]] = []
    taken: set[str] = set()
    try:
        for photo, image in images:
            mask, name = indexed(shipped, image), mask_table.new_name(photo, folders, taken)
            files.write(out / MASKS / name, pictures.encode(mask))
            rows.append((str(photo.path), f"{MASKS}/{name}"))
            files.write(out / OVERLAYS / name, pictures.encode(overlay(image, mask)))
            on_progress(len(rows))
    finally:  # an interrupted call also says what it wrote
        mask_table.write(out, rows)
    return len(rows)


def write_one(shipped: Shipped, images: Iterable[tuple[Photo, np.ndarray]], path: Path, *, force: bool = False) -> int:
    """Write the mask of a single image to a file, and return the number of images."""
    outputs.require_new(path, force=force)
    for _, image in images:
        files.write(path, pictures.encode(indexed(shipped, image)))
    return 1


def _require_room(out: Path, force: bool) -> None:
    """Refuse a folder in which something else would be overwritten."""
    if out.is_file():
        raise DataError(f"{out} is a file; give a folder for masks and overlays")
    for name in (MASKS, OVERLAYS):
        if not force and (out / name).is_dir() and any((out / name).iterdir()):
            raise DataError(f"{out / name} is not empty; give another --out, or --force to overwrite it")
    outputs.require_file(out / LEGEND, LEGEND_KIND, force=force)
    outputs.require_file(out / predict_places.TABLE, mask_table.KIND, force=force)


def samples(shipped: Shipped, images: Iterable[tuple[Photo, np.ndarray]]) -> Iterator[Sample]:
    """Yield the mask of each image as a sample of a shard."""
    for photo, image in images:
        yield predict_shards.key(photo.id), {"mask.png": pictures.encode(indexed(shipped, image))}


def write_legend(shipped: Shipped, out: Path, *, force: bool = False) -> None:
    """Write the names and colors of the classes to a file in a folder."""
    outputs.require_file(out / LEGEND, LEGEND_KIND, force=force)
    files.write(out / LEGEND, _legend(shipped))


def indexed(shipped: Shipped, image: np.ndarray) -> Image.Image:
    """Return the mask of an image (H, W, 3), with the colors of the classes."""
    return palettes.indexed(label(shipped, image), shipped.palette)


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


def _legend(shipped: Shipped) -> bytes:
    rows = ((number, name, *shipped.palette[number]) for number, name in enumerate(shipped.classes))
    return csv_tables.table(COLUMNS, rows)
