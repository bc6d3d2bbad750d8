"""Pasting a part of one image into another: one plan for images, labels, confidences and valid planes alike."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dmt.core import trees


class Paste(NamedTuple):
    """What is pasted where. Sample i keeps itself outside of its boxes and shows its partner inside."""

    inside: Tensor  # (N, H, W) bool
    partners: Tensor  # (N,) int64, a permutation that maps nobody to itself, unless there is only one

    def apply(self, values: Tensor) -> Tensor:
        """Values (N, H, W) or (N, C, H, W), pasted."""
        inside = self.inside if values.ndim == 3 else self.inside[:, None]
        return torch.where(inside, values[self.partners], values)


def roll(count: int, rng: np.random.Generator) -> np.ndarray:
    """A permutation of ``count`` samples without fixed points: everybody moves on by the same number of places."""
    by = int(rng.integers(1, count)) if count > 1 else 0
    return (np.arange(count) + by) % count


class Boxes(NamedTuple):
    """What boxes are like."""

    area: tuple[float, float]  # the range from which the share of the image that a box covers is drawn
    each: int = 1  # boxes in an image; they may overlap
    share: float = 1.0  # probability that an image gets any


def draw_box(count: int, size: tuple[int, int], boxes: Boxes, rng: np.random.Generator, device: torch.device) -> Paste:
    """Boxes of random place and aspect, wholly inside ``count`` images of ``size`` (H, W)."""
    shape = (count, boxes.each)
    portion = rng.uniform(*boxes.area, shape)
    # a box of that area has a height between `portion` and 1 of the image's, evenly in its logarithm
    tall = np.exp(rng.uniform(np.log(portion), 0.0))
    used = rng.random((count, 1)) < boxes.share
    rows = _covered(tall, rng.random(shape), size[0]) & used[..., None]
    columns = _covered(portion / tall, rng.random(shape), size[1])
    tables = (trees.send(rows, device), trees.send(columns, device))
    inside = (tables[0][:, :, :, None] & tables[1][:, :, None, :]).any(1)
    return Paste(inside, trees.send(roll(count, rng), device))


def _covered(portion: np.ndarray, place: np.ndarray, length: int) -> np.ndarray:
    """Which of ``length`` pixels lie in boxes of these portions, at these places in the room they have."""
    sides = np.rint(portion * length).clip(0, length)
    starts = np.floor(place * (length - sides + 1))
    pixels = np.arange(length)
    found: np.ndarray = (pixels >= starts[..., None]) & (pixels < (starts + sides)[..., None])
    return found
