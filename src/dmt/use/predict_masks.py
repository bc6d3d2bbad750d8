"""A run at work on new images, pixel by pixel: files in, masks and overlays out."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional as F

from dmt import csv_tables, files, outputs, pictures
from dmt.data.folders import photo_files, photo_sets
from dmt.data.images.batches import scale
from dmt.data.pixels import palettes
from dmt.errors import DataError
from dmt.outputs import Kind
from dmt.types import PADDING, ProgressCallback
from dmt.use.scoring import Shipped

COLUMNS = ("value", "class", "red", "green", "blue")
LEGEND = Kind("a legend of dmt predict", ",".join(COLUMNS).encode())


def write(
    shipped: Shipped, paths: Sequence[Path], out: Path, on_progress: ProgressCallback, *, force: bool = False
) -> int:
    """Masks, overlays and a legend below ``out``. Returns the number of images.

    A folder that holds masks is refused unless ``force``: they may have been drawn by hand.
    """
    if out.is_file():
        raise DataError(f"{out} is a file; give a folder for masks and overlays")
    outputs.require_file(out / "classes.csv", LEGEND, force=force)
    for name in ("masks", "overlays"):
        if not force and (out / name).is_dir() and any((out / name).iterdir()):
            raise DataError(f"{out / name} is not empty; give another --out, or --force to overwrite it")
    files.write(out / "classes.csv", _legend(shipped))
    taken: set[str] = set()
    for done, path in enumerate(paths, start=1):
        image = photo_files.read_photo(path)
        labels = label(shipped, image)
        name = _name(path, taken)
        mask = palettes.indexed(labels, shipped.palette)
        files.write(out / "masks" / f"{name}.png", pictures.encode(mask))
        files.write(out / "overlays" / f"{name}.png", pictures.encode(overlay(image, mask)))
        on_progress(done, len(paths))
    return len(paths)


@torch.no_grad()
def label(shipped: Shipped, image: np.ndarray) -> np.ndarray:
    """The class of every pixel of an image (H, W, 3): (H, W) uint8."""
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
    """The image with the colors of its classes over it; background, class 0, stays as it is."""
    colors, labels = np.asarray(mask.convert("RGB")), np.asarray(mask)
    mixed = (image.astype(np.float32) + colors) / 2
    return Image.fromarray(np.where(labels[..., None] == 0, image, mixed.astype(np.uint8)))


def _name(path: Path, taken: set[str]) -> str:
    """The file's own stem; a second one of that name gets a number."""
    name, number = path.stem, 1
    while name in taken:
        number += 1
        name = f"{path.stem}-{number}"
    taken.add(name)
    return name


def _legend(shipped: Shipped) -> bytes:
    rows = ((number, name, *shipped.palette[number]) for number, name in enumerate(shipped.classes))
    return csv_tables.table(COLUMNS, rows)
