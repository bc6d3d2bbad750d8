"""scikit-learn's handwritten digits: 1,797 gray images of 8×8 pixels that are installed with the library."""

import numpy as np
import torch
from torch import Tensor

from dmt.data.images import splits
from dmt.data.sets import LabeledSet

TEST = 400
"""Number of test images, the same ones for every seed; scikit-learn's copy has no test set of its own."""


def digits() -> tuple[LabeledSet[Tensor], LabeledSet[Tensor]]:
    """Return (train, test) with images (N, 1, 8, 8) uint8."""
    from sklearn.datasets import load_digits  # slow to import, and only this data set needs it

    bunch = load_digits()
    gray = np.rint(bunch.images * (255.0 / 16.0)).astype(np.uint8)  # the file has 0..16
    images, labels = torch.from_numpy(gray).unsqueeze(1), torch.from_numpy(bunch.target.astype(np.int64))
    everything = LabeledSet(tuple(f"digit-{n:04d}" for n in range(len(labels))), images, labels)
    train, test = splits.carve(labels, 10, TEST, "digits test")
    return everything.take(train), everything.take(test)
