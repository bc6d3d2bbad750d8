"""Find image files with their masks, check them, and decode them into memory."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from PIL.ImageFile import ImageFile
from torch.nn import functional as F

from dmt.data import ragged
from dmt.data.ragged import Ragged
from dmt.data.sets import LabeledSet
from dmt.errors import DataError
from dmt.types import ProgressCallback

VOID = 255
"""The mask value of a pixel that has no label."""

Plane = npt.NDArray[np.uint8]
Size = tuple[int, int]  # (height, width)
_REMEDY = "save masks as 8-bit gray or palette PNG whose pixel values are class numbers"


@dataclass(frozen=True)
class MaskedImages:
    """Image files with their mask files, not decoded yet."""

    ids: tuple[str, ...]
    images: tuple[Path, ...]
    masks: tuple[Path, ...]

    def __len__(self) -> int:
        return len(self.ids)


def pair(ids: Sequence[str], images: Mapping[str, Path], masks: Mapping[str, Path], remedy: str) -> MaskedImages:
    """Pair the image and the mask of each id. The error message about missing files ends in ``remedy``."""
    for kind, found in (("image", images), ("mask", masks)):
        lost = [each for each in ids if each not in found]
        if lost:
            raise DataError(f"{len(lost)} of {len(ids)} {kind}s are missing, the first is '{lost[0]}'; {remedy}")
    return MaskedImages(tuple(ids), tuple(images[each] for each in ids), tuple(masks[each] for each in ids))


def read_image(path: Path, size: Size | None = None) -> Plane:
    """Read an image as RGB (H, W, 3), resized to ``size`` if given: bilinear and, as in training, not antialiased."""
    with _opened(path) as image:
        rgb = image.convert("RGB")
        own = (rgb.height, rgb.width)
        if size is None or size == own:
            return np.asarray(rgb)
        if own == (2 * size[0], 2 * size[1]):  # same result: each new center is the middle of 4 pixels
            return np.asarray(rgb.reduce(2))
    planes = torch.from_numpy(np.array(rgb)).permute(2, 0, 1)[None].float()  # (1, 3, H, W)
    resized = F.interpolate(planes, size, mode="bilinear", align_corners=False)[0]
    plane: Plane = (resized + 0.5).byte().permute(1, 2, 0).numpy()
    return plane


def read_mask(path: Path, table: Plane | None = None, size: Size | None = None) -> Plane:
    """Read a mask (H, W) of the numbers stored in the file, never the colors of its palette.

    Args:
        path: the file.
        table: (256,) maps stored numbers to classes.
        size: (H, W) to resize to: row i is taken from row ⌊i·old/new⌋, and columns likewise.
    """
    with _opened(path) as image:
        # Pillow scales 2- and 4-bit gray to 0..255, which would turn class 1 into 85 or 17
        stretched = image.mode == "L" and any(tile[3] in ("L;2", "L;4") for tile in image.tile)
        if image.mode not in ("L", "P") or stretched:
            raise DataError(f"{path} holds {'few-bit gray' if stretched else image.mode} pixels; {_REMEDY}")
        plane: Plane = np.asarray(image)
    if size is not None and size != plane.shape:
        rows, columns = (np.arange(new) * old // new for new, old in zip(size, plane.shape, strict=True))
        plane = plane[rows[:, None], columns]
    return plane if table is None else table[plane]


def open_set(
    masked: MaskedImages,
    classes: int,
    table: Plane | None = None,
    size: Callable[[Size], Size] | None = None,
    tell: ProgressCallback | None = None,
) -> LabeledSet[Ragged]:
    """Decode all files into a labeled set, whose images and labels are each a ``Ragged``.

    Args:
        masked: the files.
        classes: number of classes; masks may hold 0 … classes − 1 and 255, after mapping by ``table``.
        table: maps numbers in mask files to classes, see ``read_mask``.
        size: maps the (H, W) of a file to the (H, W) to read it at.
        tell: called with the number of files read so far and the total, images and masks together.
    """
    sizes = _sizes(masked)
    if size is not None:
        sizes = [size(each) for each in sizes]

    def image(position: int) -> Plane:
        return read_image(masked.images[position], sizes[position])

    def mask(position: int) -> Plane:
        plane = read_mask(masked.masks[position], table, sizes[position])
        wrong = plane[(plane >= classes) & (plane != VOID)]
        if wrong.size:
            path = masked.masks[position]
            raise DataError(f"{path} has the class {wrong[0]}, outside 0..{classes - 1} and 255; {_REMEDY}")
        return plane

    images = ragged.fill(sizes, image, on_progress=_part(tell, 0, len(masked)))
    labels = ragged.fill(sizes, mask, channels=None, on_progress=_part(tell, len(masked), len(masked)))
    return LabeledSet(masked.ids, images, labels)


def _part(tell: ProgressCallback | None, before: int, count: int) -> ProgressCallback | None:
    """Return a callback that reports one of two passes over ``count`` files as a part of both."""
    return None if tell is None else lambda done, of: tell(before + done, 2 * count)


def _sizes(masked: MaskedImages) -> list[Size]:
    """Return the (H, W) of every image, read from the file headers; its mask must have the same size."""

    def size(position: int) -> Size:
        with _opened(masked.images[position]) as image, _opened(masked.masks[position]) as mask:
            if image.size != mask.size:
                width, height = image.size
                raise DataError(
                    f"{masked.masks[position]} has {mask.height}×{mask.width} pixels but its image has "
                    f"{height}×{width}; give every image a mask of its own size"
                )
            return image.height, image.width

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(size, range(len(masked))))


@contextmanager
def _opened(path: Path) -> Iterator[ImageFile]:
    try:
        with Image.open(path) as image:
            yield image
    except DataError:
        raise
    except FileNotFoundError as error:
        raise DataError(f"{path} is missing; put it there or take it off the list") from error
    except Exception as error:  # Pillow's decoders raise many kinds of errors
        raise DataError(f"cannot read {path} ({type(error).__name__}); put the original file there") from error
