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
        thumbnails: (N, P) small copies of the images, in [0, 1], to know copies by.
        kinds: (N,) int, e.g. the predicted class; no kind may fill the list.
    """

    worth: np.ndarray
    features: np.ndarray
    thumbnails: np.ndarray
    kinds: np.ndarray


def choose(pool: Pool, count: int, most: int) -> list[int]:
    """Positions of up to ``count`` images, best first, one by one: worth times distance to the nearest chosen one.

    Copies of an image that was chosen are never chosen, even if the list stays short.

    Args:
        most: images of one kind; if all kinds are full, the rest of the list does not ask for kinds.
    """
    features, thumbnails = _Points(pool.features), _Points(pool.thumbnails)
    near = np.full(len(pool.worth), np.inf, np.float32)  # (N,) distance to the nearest that is chosen
    free = np.ones(len(pool.worth), dtype=bool)
    taken = np.zeros(int(pool.kinds.max(initial=0)) + 1, dtype=np.int64)
    chosen: list[int] = []
    while len(chosen) < count and free.any():
        open_ = free & (taken[pool.kinds] < most)
        best = _best(pool.worth, near, open_ if open_.any() else free)
        chosen.append(best)
        taken[pool.kinds[best]] += 1
        near = np.minimum(near, features.distances(best))
        free &= thumbnails.distances(best) / np.sqrt(pool.thumbnails.shape[1]) >= COPY
        free[best] = False
    return chosen


def _best(worth: np.ndarray, near: np.ndarray, among: np.ndarray) -> int:
    """The position of the highest worth times distance; of equals the first."""
    gains = worth if np.isinf(near).all() else worth * near
    return int(np.where(among, gains, -1.0).argmax())


class _Points:
    """Points (N, D) that know their squared lengths: a distance then takes one product, and no second (N, D)."""

    def __init__(self, points: np.ndarray) -> None:
        # centered: what all points have in common would cost float32 the digits of their differences
        self._points = (points - points.mean(0, keepdims=True) if len(points) else points).astype(np.float32)
        self._squares = np.einsum("nd,nd->n", self._points, self._points)

    def distances(self, position: int) -> np.ndarray:
        """(N,) Euclidean, of all from one of them."""
        squared = self._squares + self._squares[position] - 2 * (self._points @ self._points[position])
        result: np.ndarray = np.sqrt(np.maximum(squared, 0.0))
        return result
