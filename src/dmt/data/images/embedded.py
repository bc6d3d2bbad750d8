"""scikit-learn's handwritten digits: 1,797 gray images of 8×8 pixels that come with the installation."""

import numpy as np
import torch
from torch import Tensor

from dmt.data.images import splits
from dmt.data.sets import LabeledSet

TEST = 400
"""Images held out for testing, the same for every seed; scikit-learn's copy has no test part of its own."""


def digits() -> tuple[LabeledSet[Tensor], LabeledSet[Tensor]]:
    """(train, test), images (N, 1, 8, 8) uint8."""
    from sklearn.datasets import load_digits  # slow to import, and only this data set needs it

    bunch = load_digits()
    gray = np.rint(bunch.images * (255.0 / 16.0)).astype(np.uint8)  # 0..16 in the file
    images, labels = torch.from_numpy(gray).unsqueeze(1), torch.from_numpy(bunch.target.astype(np.int64))
    everything = LabeledSet(tuple(f"digit-{n:04d}" for n in range(len(labels))), images, labels)
    train, test = splits.carve(labels, 10, TEST, "digits test")
    return everything.take(train), everything.take(test)
