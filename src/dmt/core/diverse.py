"""Choose a few images that are valuable and differ from each other: ten near-duplicates teach as much as one."""

from dataclasses import dataclass

import numpy as np

COPY = 4.0 / 255.0
"""Root mean square difference of thumbnails below which two images count as duplicates."""


@dataclass(frozen=True)
class Pool:
    """Images to choose from.

    Attributes:
        worth: (N,) value of each image, 0 or more.
        features: (N, D) features of each image by the nets.
        thumbnails: (N, P) pixels of small versions of the images, in [0, 1], by which duplicates are recognized.
        kinds: (N,) int, 0 or more, e.g. the predicted class: the number chosen per kind is limited.
    """

    worth: np.ndarray
    features: np.ndarray
    thumbnails: np.ndarray
    kinds: np.ndarray


def choose(pool: Pool, count: int, most: int) -> list[int]:
    """Choose up to ``count`` images greedily by worth times feature distance to the nearest image already chosen.

    Duplicates of a chosen image are never chosen, even if fewer than ``count`` images remain.

    Args:
        pool: the images to choose from.
        count: how many to choose at most.
        most: how many to choose of one kind at most; when every kind has reached it, kinds no longer matter.

    Returns:
        Positions in the pool, best first.
    """
    features, thumbnails = _Points(pool.features), _Points(pool.thumbnails)
    near = np.full(len(pool.worth), np.inf, np.float32)  # (N,) distance to the nearest chosen image
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
    """Return the position of the highest worth times distance, or of the highest worth if nothing is chosen yet."""
    gains = worth if np.isinf(near).all() else worth * near
    return int(np.where(among, gains, -1.0).argmax())


class _Points:
    """Points (N, D) with their squared norms precomputed, so that distances need no temporary array of that size."""

    def __init__(self, points: np.ndarray) -> None:
        # centered, since a large common offset would cost the distances precision in float32
        self._points = (points - points.mean(0, keepdims=True) if len(points) else points).astype(np.float32)
        self._squares = np.einsum("nd,nd->n", self._points, self._points)

    def distances(self, position: int) -> np.ndarray:
        """Return the Euclidean distances (N,) of all points from the one at this position."""
        squared = self._squares + self._squares[position] - 2 * (self._points @ self._points[position])
        result: np.ndarray = np.sqrt(np.maximum(squared, 0.0))
        return result
