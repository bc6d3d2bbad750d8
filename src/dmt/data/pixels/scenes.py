"""A synthetic segmentation data set without download: scikit-learn's handwritten digits on textured backgrounds.

Scenes are made by elementary arithmetic and uniform draws only, so that they are identical bit by bit on all machines.
"""

import numpy as np
import numpy.typing as npt
from numpy.random import Generator
from torch import Tensor

from dmt.core import streams
from dmt.data import ragged
from dmt.data.images import embedded
from dmt.data.ragged import Ragged
from dmt.data.sets import LabeledSet

CLASSES = ("background", *"0123456789")
TRAIN, TEST = 600, 150

_SIZES = ((64, 64),) * 13 + ((64, 80), (56, 64), (80, 56))
_INK = 0.3  # pixels with more ink belong to the digit
_HUES = 0.45  # greatest deviation from a digit's mean hue, on a circle of 6; the means of neighbors differ by 0.6
_TRIES = 12  # positions tried for a digit before it is left out

Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]


def scenes(train: int = TRAIN, test: int = TEST) -> tuple[LabeledSet[Ragged], LabeledSet[Ragged]]:
    """Make (train, test): RGB scenes of several sizes and their masks. No digit image is used in both.

    A scene depends only on its number, so a smaller set consists of the first scenes of a larger one.
    """
    parts = zip(("train", "test"), (train, test), embedded.digits(), strict=True)
    first, second = (_part(part, count, digits) for part, count, digits in parts)
    return first, second


def _part(part: str, count: int, digits: LabeledSet[Tensor]) -> LabeledSet[Ragged]:
    inks = (digits.images.squeeze(1).numpy() / 255).astype(np.float32)  # (N, 8, 8)
    labels = digits.labels.numpy()
    pairs = [_scene(streams.stream("scenes", part, number), inks, labels) for number in range(count)]
    ids = tuple(f"scene-{number:04d}" for number in range(1, count + 1))
    return LabeledSet(ids, ragged.stack([image for image, _ in pairs]), ragged.stack([mask for _, mask in pairs]))


def _scene(draw: Generator, inks: Floats, labels: npt.NDArray[np.int64]) -> tuple[Bytes, Bytes]:
    """Make one image (H, W, 3) and its mask (H, W)."""
    height, width = _SIZES[draw.integers(len(_SIZES))]
    image = _ground(draw, height, width)
    mask = np.zeros((height, width), np.uint8)
    taken = np.zeros((height, width), bool)
    for _ in range(min(3, int(draw.integers(1, 5)))):
        which = draw.integers(len(inks))
        tall = int(draw.integers(22, 29))
        ink = _resize(inks[which], tall, int(draw.integers(tall * 3 // 4, tall + 1)))
        place = _place(draw, taken, ink.shape)
        if place is None:
            continue
        taken[place] = True
        mask[place][ink > _INK] = labels[which] + 1
        opacity = np.clip(ink * 1.6 - 0.2, 0, 1)[..., None]  # sharpens the interpolated edge
        image[place] += opacity * (_color(draw, int(labels[which])) - image[place])
    image += _uniform(draw, -0.05, 0.05, image.shape)
    return np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8), mask


def _ground(draw: Generator, height: int, width: int) -> Floats:
    """Make a background (H, W, 3): a gradient, large color clouds, and gray texture about as fine as a pen stroke."""
    corners = _uniform(draw, 0.1, 0.45, (2, 2, 3))
    clouds = _uniform(draw, -0.15, 0.15, (5, 5, 3))
    texture = _uniform(draw, -0.15, 0.15, (height // 4, width // 4, 1)) * _between(draw, 0.3, 1)
    first, second, third = (_resize(each, height, width) for each in (corners, clouds, texture))
    return first + second + third


def _color(draw: Generator, digit: int) -> Floats:
    """Draw a bright color, (3,). Hues of different digits overlap, so the color is only a hint to the class."""
    hue = 0.6 * digit + _between(draw, -_HUES, _HUES)  # 0 to 6: red, yellow, green, cyan, blue, magenta
    pure = [min(max(abs((hue + turn) % 6 - 3) - 1, 0), 1) for turn in (0, 4, 2)]
    light, strength = _between(draw, 0.7, 1), _between(draw, 0.5, 0.9)
    return np.array([light * (1 - strength * (1 - channel)) for channel in pure], np.float32)


def _place(draw: Generator, taken: npt.NDArray[np.bool_], size: tuple[int, ...]) -> tuple[slice, slice] | None:
    """Draw a box of this size of which at most a tenth is taken; None if no such box is found."""
    for _ in range(_TRIES):
        top, left = (draw.integers(whole - part + 1) for whole, part in zip(taken.shape, size, strict=True))
        box = slice(top, top + size[0]), slice(left, left + size[1])
        if taken[box].sum() * 10 <= size[0] * size[1]:
            return box
    return None


def _between(draw: Generator, low: float, high: float) -> float:
    return low + (high - low) * draw.random()


def _uniform(draw: Generator, low: float, high: float, shape: tuple[int, ...]) -> Floats:
    return (low + (high - low) * draw.random(shape)).astype(np.float32)


def _resize(plane: Floats, height: int, width: int) -> Floats:
    """Resize (h, w, …) to (H, W, …) bilinearly with aligned corners."""
    for axis, size in enumerate((height, width)):
        position = np.arange(size) * (plane.shape[axis] - 1) / (size - 1)
        low = np.minimum(position.astype(np.int64), plane.shape[axis] - 2)
        share = (position - low).astype(np.float32).reshape((-1,) + (1,) * (plane.ndim - 1 - axis))
        plane = plane.take(low, axis) * (1 - share) + plane.take(low + 1, axis) * share
    return plane
