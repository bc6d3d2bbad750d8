"""Labeled images drawn by class, so that a class that few images show comes up as often as any other."""

from collections.abc import Iterator

import numpy as np

from dmt.data.images.batches import Order
from dmt.data.pixels import size_groups
from dmt.data.ragged import Ragged


class ClassOrder:
    """An endless row of images, cut into steps of ``size``: a class first, then one of the images that show it.

    Classes come in permutations, each once before any comes again, and so do the images of a class. An image that no
    class is seen in never comes up.
    """

    def __init__(self, masks: Ragged, size: int, *names: str | int) -> None:
        self._size = size
        shown = _images_by_class(masks)
        self._positions = [np.array(shown[each]) for each in sorted(shown)]
        self._classes = Order(len(shown), size, *names, "classes")
        self._orders = [Order(len(found), 1, *names, number) for number, found in enumerate(self._positions)]

    def __call__(self, step: int) -> np.ndarray:
        """Positions of this step, (size,) int64."""
        classes = self._classes(step)
        start = step * self._size
        turns = (start + np.arange(self._size)) // len(self._positions)  # every class has one turn a permutation
        found = [self._positions[each][self._orders[each](turn)[0]] for each, turn in zip(classes, turns, strict=True)]
        return np.array(found, dtype=np.int64)


def _images_by_class(masks: Ragged) -> dict[int, list[int]]:
    shown: dict[int, list[int]] = {}
    for position, classes in enumerate(_classes(masks)):
        for each in classes:
            shown.setdefault(each, []).append(position)
    return shown


def _classes(masks: Ragged) -> Iterator[list[int]]:
    """The classes of each mask."""
    for position in range(len(masks)):
        counts = np.bincount(masks.image(position).numpy().reshape(-1), minlength=size_groups.NO_LABEL + 1)
        yield np.flatnonzero(counts[: size_groups.NO_LABEL]).tolist()
