"""Labeled images drawn by class."""

from collections import Counter

import numpy as np

from dmt.data import ragged
from dmt.data.pixels.class_order import ClassOrder
from dmt.data.ragged import Ragged


def masks(*shown: tuple[int, ...]) -> Ragged:
    """Masks that show these classes, 255 everywhere else."""
    planes = []
    for number, classes in enumerate(shown):
        plane = np.full((4, 5 + number), 255, np.uint8)
        plane[0, : len(classes)] = classes
        planes.append(plane)
    return ragged.stack(planes)


def rows(order: ClassOrder, steps: int) -> list[int]:
    return [int(each) for step in range(steps) for each in order(step)]


def test_a_rare_class_comes_up_as_often_as_a_common_one() -> None:
    """Class 2 is in one of six images: of 300 draws a third shows it, where image by image a sixth would."""
    order = ClassOrder(masks((0,), (0,), (0, 1), (1,), (1,), (0, 2)), 5, 1, "labeled order")
    drawn = Counter(rows(order, 60))
    assert drawn[5] >= 100
    assert set(drawn) == set(range(6))


def test_classes_and_images_of_a_class_come_in_turn() -> None:
    """With one class an image each, a permutation of classes is one of images."""
    order = ClassOrder(masks((0,), (1,), (2,), (2,)), 3, 1, "labeled order")
    steps = [sorted(int(each) for each in order(step)) for step in range(8)]
    assert all(step in ([0, 1, 2], [0, 1, 3]) for step in steps)
    assert {tuple(steps[0]), tuple(steps[1])} == {(0, 1, 2), (0, 1, 3)}


def test_a_step_is_the_same_whatever_was_asked_before() -> None:
    planes = masks((0, 1), (1,), (0, 3), (3,), (255,))
    forward = rows(ClassOrder(planes, 4, 7, "labeled order"), 9)
    order = ClassOrder(planes, 4, 7, "labeled order")
    backward = [list(map(int, order(step))) for step in reversed(range(9))]
    assert forward == [each for step in reversed(backward) for each in step]
    assert 4 not in forward  # no class is seen in it
