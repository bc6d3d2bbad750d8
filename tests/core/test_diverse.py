"""A list of images is worth much, has no copies and is not of one kind."""

import numpy as np

from dmt.core import diverse
from dmt.core.diverse import Pool


def pool(worth: list[float], features: list[list[float]], **changes: np.ndarray) -> Pool:
    count = len(worth)
    chance = np.random.default_rng(0)
    thumbnails = changes.get("thumbnails", chance.random((count, 12)))
    return Pool(np.array(worth), np.array(features), thumbnails, changes.get("kinds", np.zeros(count, dtype=np.int64)))


def test_the_worthiest_comes_first_then_what_is_far_from_it() -> None:
    found = diverse.choose(pool([0.9, 0.8, 0.5], [[0.0, 0.0], [0.1, 0.0], [1.0, 0.0]]), 3, most=3)
    assert found == [0, 2, 1]


def test_distances_are_exact_enough_far_from_the_origin() -> None:
    points = (1000.0 + np.random.default_rng(3).random((50, 8))).astype(np.float32)
    worth, chosen = np.random.default_rng(4).random(50), [0]
    worth[0] = 2.0
    for _ in range(9):  # the same in plain float64
        gaps = np.linalg.norm(points[:, None].astype(np.float64) - points[chosen], axis=2).min(1)
        chosen.append(int((worth * gaps).argmax()))
    assert diverse.choose(pool(worth.tolist(), points.tolist()), 10, most=50) == chosen


def test_copies_are_never_chosen_even_if_the_list_stays_short() -> None:
    chance = np.random.default_rng(1)
    originals = chance.random((4, 48))
    noise = chance.normal(0, 1 / 255, (10, 4, 48))  # as compression leaves it
    thumbnails = np.concatenate([originals, *(originals + each for each in noise)])
    features = np.tile(chance.random((4, 3)), (11, 1))
    found = diverse.choose(pool([1.0] * 44, features.tolist(), thumbnails=thumbnails), 20, most=20)
    assert sorted(each % 4 for each in found) == [0, 1, 2, 3]


def test_no_kind_fills_the_list_while_there_are_others() -> None:
    worth = [1.0] * 10 + [0.01] * 10
    features = np.random.default_rng(2).random((20, 3)).tolist()
    kinds = np.repeat([0, 1], 10)
    found = diverse.choose(pool(worth, features, kinds=kinds), 10, most=6)
    assert sum(each < 10 for each in found) == 6
    assert len(set(diverse.choose(pool(worth, features, kinds=kinds), 20, most=6))) == 20  # kinds do not end a list


def test_nothing_to_choose_from() -> None:
    empty = Pool(np.zeros(0), np.zeros((0, 2)), np.zeros((0, 3)), np.zeros(0, dtype=np.int64))
    assert diverse.choose(empty, 5, most=1) == []
