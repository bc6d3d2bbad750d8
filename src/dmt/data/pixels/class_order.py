"""Class-balanced sampling of labeled images: a class shown by few images is drawn as often as any other."""

from collections.abc import Iterator

import numpy as np

from dmt.data.images.batches import Order
from dmt.data.pixels import size_groups
from dmt.data.ragged import Ragged


class ClassOrder:
    """An endless sequence of images, cut into steps of ``size``: first a class is drawn, then an image that shows it.

    Classes are drawn in permutations, each once before any is repeated, and so are the images of each class. An image
    without any labeled pixel is never drawn.
    """

    def __init__(self, masks: Ragged, size: int, *names: str | int) -> None:
        self._size = size
        shown = _images_by_class(masks)
        self._positions = [np.array(shown[each]) for each in sorted(shown)]
        self._classes = Order(len(shown), size, *names, "classes")
        self._orders = [Order(len(found), 1, *names, number) for number, found in enumerate(self._positions)]

    def __call__(self, step: int) -> np.ndarray:
        """Return the positions of a step, (size,) int64."""
        classes = self._classes(step)
        start = step * self._size
        turns = (start + np.arange(self._size)) // len(self._positions)  # every class comes once per permutation
        found = [self._positions[each][self._orders[each](turn)[0]] for each, turn in zip(classes, turns, strict=True)]
        return np.array(found, dtype=np.int64)


def _images_by_class(masks: Ragged) -> dict[int, list[int]]:
    shown: dict[int, list[int]] = {}
    for position, classes in enumerate(_classes(masks)):
        for each in classes:
            shown.setdefault(each, []).append(position)
    return shown


def _classes(masks: Ragged) -> Iterator[list[int]]:
    """Yield the classes that occur in each mask."""
    for position in range(len(masks)):
        counts = np.bincount(masks.image(position).numpy().reshape(-1), minlength=size_groups.NO_LABEL + 1)
        yield np.flatnonzero(counts[: size_groups.NO_LABEL]).tolist()
