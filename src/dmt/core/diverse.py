"""A short list of images that are worth much and differ from each other: ten near-copies teach what one does."""

from dataclasses import dataclass

import numpy as np

COPY = 4.0 / 255.0
"""Two images whose colors differ by less than this in the mean square are one image to a person."""


@dataclass(frozen=True)
class Pool:
    """Images to choose from.

    Attributes:
        worth: (N,) how much each is wanted, 0 or more.
        features: (N, D) what the nets see in each.
        looks: (N, P) small copies of the images, in [0, 1], to know copies by.
        kinds: (N,) int, e.g. the predicted class; no kind may fill the list.
    """

    worth: np.ndarray
    features: np.ndarray
    looks: np.ndarray
    kinds: np.ndarray


def choose(pool: Pool, count: int, most: int, covered: np.ndarray | None = None) -> list[int]:
    """Positions of up to ``count`` images, best first, one by one: worth times distance to the nearest chosen one.

    Copies of an image that was chosen are never chosen, even if the list stays short.

    Args:
        most: images of one kind; if all kinds are full, the rest of the list does not ask for kinds.
        covered: (M, D) features of images that count as chosen before.
    """
    near = np.full(len(pool.worth), np.inf)  # (N,) distance to the nearest that is chosen or covered
    for each in () if covered is None else covered:
        near = np.minimum(near, _distances(pool.features, each))
    free = np.ones(len(pool.worth), dtype=bool)
    taken = np.zeros(int(pool.kinds.max(initial=0)) + 1, dtype=np.int64)
    chosen: list[int] = []
    while len(chosen) < count and free.any():
        open_ = free & (taken[pool.kinds] < most)
        best = _best(pool.worth, near, open_ if open_.any() else free)
        chosen.append(best)
        taken[pool.kinds[best]] += 1
        near = np.minimum(near, _distances(pool.features, pool.features[best]))
        free &= _distances(pool.looks, pool.looks[best]) / np.sqrt(pool.looks.shape[1]) >= COPY
        free[best] = False
    return chosen


def _best(worth: np.ndarray, near: np.ndarray, among: np.ndarray) -> int:
    """The position of the highest worth times distance; of equals the first."""
    gains = worth if np.isinf(near).all() else worth * near
    return int(np.where(among, gains, -1.0).argmax())


def _distances(points: np.ndarray, center: np.ndarray) -> np.ndarray:
    """(N,) Euclidean."""
    result: np.ndarray = np.sqrt(np.square(points - center).sum(1))
    return result
