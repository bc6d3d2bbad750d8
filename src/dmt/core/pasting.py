"""Paste regions of one image into another (CutMix, ClassMix), in the same way for images, labels and confidences."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dmt.core import trees

CLASSES = 255
"""Largest number of classes that a mask file can distinguish."""


class Paste(NamedTuple):
    """Where to paste what: inside its region, sample i shows its partner; outside, it stays as it is."""

    inside: Tensor  # (N, H, W) bool
    partners: Tensor  # (N,) int64, a permutation without fixed points, unless there is only one sample

    def apply(self, values: Tensor, source: Tensor | None = None) -> Tensor:
        """Return pasted values, (N, H, W) or (N, C, H, W); regions are taken from ``source``, or from the values."""
        inside = self.inside if values.ndim == 3 else self.inside[:, None]
        return torch.where(inside, (values if source is None else source)[self.partners], values)


def roll(count: int, rng: np.random.Generator) -> np.ndarray:
    """Return a random cyclic shift of ``count`` samples, a permutation without fixed points if there are several."""
    by = int(rng.integers(1, count)) if count > 1 else 0
    return (np.arange(count) + by) % count


class Boxes(NamedTuple):
    """How the boxes of an image are drawn."""

    area: tuple[float, float]  # range of the share of the image that a box covers
    each: int = 1  # number of boxes per image; they may overlap
    share: float = 1.0  # probability that an image gets boxes at all


def draw_box(count: int, size: tuple[int, int], boxes: Boxes, rng: np.random.Generator, device: torch.device) -> Paste:
    """Draw boxes of random position and aspect ratio, entirely inside ``count`` images of ``size`` (H, W)."""
    portion = rng.uniform(*boxes.area, (count, boxes.each))
    inside = boxes_of(portion, size, rng, device, share=boxes.share)
    return Paste(inside, trees.send(roll(count, rng), device))


def boxes_of(
    portion: np.ndarray, size: tuple[int, int], rng: np.random.Generator, device: torch.device, *, share: float = 1.0
) -> Tensor:
    """Draw boxes that cover the given portions (N, boxes) of their images; return where they lie, (N, H, W) bool."""
    # relative height of a box: log-uniform between `portion` and 1, so that height and width fit into the image
    tall = np.exp(rng.uniform(np.log(portion), 0.0))
    used = rng.random((len(portion), 1)) < share
    rows = _covered(tall, rng.random(portion.shape), size[0]) & used[..., None]
    columns = _covered(portion / tall, rng.random(portion.shape), size[1])
    tables = (trees.send(rows, device), trees.send(columns, device))
    return (tables[0][:, :, :, None] & tables[1][:, :, None, :]).any(1)


class ClassDraw(NamedTuple):
    """Randomness of ClassMix, drawn before the labels that it is applied to are known."""

    priorities: Tensor  # (N, 255) float32: the half of the classes of image i with the lowest ones is pasted
    partners: Tensor  # (N,) int64, as in `Paste`

    def paste(self, labels: Tensor, valid: Tensor | None = None) -> Paste:
        """Return how to paste half of the classes of each image, rounded down, onto another image.

        Args:
            labels: (N, H, W) int64, classes 0 … 254.
            valid: (N, H, W) bool, the pixels that may be pasted; None for all.
        """
        classes = labels.flatten(1)
        counted = torch.ones_like(classes, dtype=torch.bool) if valid is None else valid.flatten(1)
        found = torch.zeros_like(self.priorities).scatter_add_(1, classes, counted.float()) > 0  # (N, 255)
        place = self.priorities.masked_fill(~found, torch.inf).argsort(1).argsort(1)
        chosen = place < (found.sum(1) // 2)[:, None]
        taken = (chosen.gather(1, classes) & counted).view_as(labels)
        return Paste(taken[self.partners], self.partners)


def draw_classes(count: int, rng: np.random.Generator, device: torch.device) -> ClassDraw:
    """Draw the priorities of classes and the partners of ``count`` images."""
    priorities = rng.random((count, CLASSES), dtype=np.float32)
    return ClassDraw(trees.send(priorities, device), trees.send(roll(count, rng), device))


def _covered(portion: np.ndarray, place: np.ndarray, length: int) -> np.ndarray:
    """Return which pixels along one side lie in the boxes, (*portion.shape, length) bool.

    Args:
        portion: share of the side that each box covers.
        place: position of each box within the room that it has, in [0, 1).
        length: pixels of the side.
    """
    sides = np.rint(portion * length).clip(0, length)
    starts = np.floor(place * (length - sides + 1))
    pixels = np.arange(length)
    found: np.ndarray = (pixels >= starts[..., None]) & (pixels < (starts + sides)[..., None])
    return found
