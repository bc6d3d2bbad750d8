"""Pasting a part of one image into another: one plan for images, labels, confidences and valid planes alike."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dmt.core import trees

CLASSES = 255
"""More than this no mask tells apart."""


class Paste(NamedTuple):
    """What is pasted where. Sample i keeps itself outside of its boxes and shows its partner inside."""

    inside: Tensor  # (N, H, W) bool
    partners: Tensor  # (N,) int64, a permutation that maps nobody to itself, unless there is only one

    def apply(self, values: Tensor, source: Tensor | None = None) -> Tensor:
        """Values (N, H, W) or (N, C, H, W), pasted; partners show what they have in ``source``, if it is given."""
        inside = self.inside if values.ndim == 3 else self.inside[:, None]
        return torch.where(inside, (values if source is None else source)[self.partners], values)


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
    portion = rng.uniform(*boxes.area, (count, boxes.each))
    inside = boxes_of(portion, size, rng, device, share=boxes.share)
    return Paste(inside, trees.send(roll(count, rng), device))


def boxes_of(
    portion: np.ndarray, size: tuple[int, int], rng: np.random.Generator, device: torch.device, *, share: float = 1.0
) -> Tensor:
    """Where boxes that cover these portions (N, boxes) of images lie, (N, H, W) bool."""
    # a box of that area has a height between `portion` and 1 of the image's, evenly in its logarithm
    tall = np.exp(rng.uniform(np.log(portion), 0.0))
    used = rng.random((len(portion), 1)) < share
    rows = _covered(tall, rng.random(portion.shape), size[0]) & used[..., None]
    columns = _covered(portion / tall, rng.random(portion.shape), size[1])
    tables = (trees.send(rows, device), trees.send(columns, device))
    return (tables[0][:, :, :, None] & tables[1][:, :, None, :]).any(1)


class ClassDraw(NamedTuple):
    """Which classes are pasted is known once there are labels; what is random about it is drawn before."""

    priorities: Tensor  # (N, 255) float32: the first half of the classes of image i, in this order, goes elsewhere
    partners: Tensor  # (N,) int64, as in `Paste`

    def paste(self, labels: Tensor, valid: Tensor | None = None) -> Paste:
        """Half of the classes of each image, rounded down, goes onto another. Only valid pixels (N, H, W) do."""
        classes = labels.flatten(1)
        counted = torch.ones_like(classes, dtype=torch.bool) if valid is None else valid.flatten(1)
        found = torch.zeros_like(self.priorities).scatter_add_(1, classes, counted.float()) > 0  # (N, 255)
        place = self.priorities.masked_fill(~found, torch.inf).argsort(1).argsort(1)
        chosen = place < (found.sum(1) // 2)[:, None]
        taken = (chosen.gather(1, classes) & counted).view_as(labels)
        return Paste(taken[self.partners], self.partners)


def draw_classes(count: int, rng: np.random.Generator, device: torch.device) -> ClassDraw:
    """For ``count`` images."""
    priorities = rng.random((count, CLASSES), dtype=np.float32)
    return ClassDraw(trees.send(priorities, device), trees.send(roll(count, rng), device))


def _covered(portion: np.ndarray, place: np.ndarray, length: int) -> np.ndarray:
    """Which of ``length`` pixels lie in boxes of these portions, at these places in the room they have."""
    sides = np.rint(portion * length).clip(0, length)
    starts = np.floor(place * (length - sides + 1))
    pixels = np.arange(length)
    found: np.ndarray = (pixels >= starts[..., None]) & (pixels < (starts + sides)[..., None])
    return found
