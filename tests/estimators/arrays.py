"""Clouds of points, of which few have a label."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]


def clouds(labeled: int = 3, samples: int = 90, noise: float = 1.0, seed: int = 0) -> tuple[Array, Labels, Labels]:
    """Three classes in four dimensions: samples, their classes, and the same with -1 for all but some of each."""
    chance = np.random.default_rng(seed)
    truth = np.arange(samples) % 3
    rows = 4.0 * np.eye(4)[truth] + noise * chance.normal(size=(samples, 4))
    partly = np.where(np.arange(samples) < 3 * labeled, truth, -1)
    return rows, truth, partly
