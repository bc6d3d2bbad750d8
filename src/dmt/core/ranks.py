"""The most confident sites of each class, found without sorting: one pass counts, a second marks.

What is held is a counter for every class and code, however many images there are.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dmt.core import selection
from dmt.core.codes import LEVELS


class Cutoffs(NamedTuple):
    """Which sites of each class to keep: those above its code, and at the code itself as many as there is room for."""

    codes: Tensor  # (classes,) int64
    ties: Tensor  # (classes,) int64: how many sites with this very code, first come first served


class ClassRanks:
    """Counts how often each class was predicted with each code."""

    def __init__(self, classes: int) -> None:
        self.counts = torch.zeros(classes, LEVELS, dtype=torch.int64)

    @property
    def predicted(self) -> Tensor:
        """(classes,) sites of each class."""
        return self.counts.sum(1)

    def add(self, labels: Tensor, codes: Tensor) -> None:
        """Count sites, of any shape and on any device.

        Args:
            labels: 0 … classes − 1; every site counts.
            codes: 0 … 65,535, not packed.
        """
        if codes.dtype == torch.int16:
            raise TypeError("these codes are packed: unpack them first")
        cells = (labels.long() * LEVELS + codes.long()).flatten().cpu()
        # in place: a histogram of its own for each image would cost four times as much as the counting
        self.counts.view(-1).scatter_add_(0, cells, torch.ones(1, dtype=torch.int64).expand(len(cells)))

    def cutoffs(self, fraction: float) -> Cutoffs:
        """Where to cut so that exactly ``quota(fraction, n)`` of the n sites of each class are kept."""
        quotas = torch.tensor([selection.quota(fraction, count) for count in self.predicted.tolist()])
        reaching = self.counts.flip(1).cumsum(1).flip(1)  # (classes, LEVELS): sites with this code or a higher one
        # the highest code that enough sites reach; with a quota of 0 that is the last one, and no tie is kept
        codes = (reaching >= quotas[:, None]).sum(1) - 1
        at = codes[:, None]
        above = (reaching.gather(1, at) - self.counts.gather(1, at)).squeeze(1)
        return Cutoffs(codes, quotas - above)


class Compared(NamedTuple):
    """One image against the cutoffs."""

    above: np.ndarray  # (H, W) bool
    tied: np.ndarray  # (T,) flat positions at the cutoff, in pixel order
    classes: np.ndarray  # (T,) their labels


class Selector:
    """Marks what to keep, image by image in order: of sites at the cutoff, the earlier images' come first.

    Comparing, the long part, may be done for many images at once; settling uses up ties, one image after the other.
    """

    def __init__(self, cutoffs: Cutoffs) -> None:
        self._codes = cutoffs.codes.numpy().astype(np.uint16)
        self._ties = cutoffs.ties.numpy().copy()

    def compare(self, labels: np.ndarray, codes: np.ndarray) -> Compared:
        """One image's labels and uint16 codes, both (H, W)."""
        cutoff = self._codes[labels]
        tied = np.flatnonzero(codes == cutoff)
        return Compared(codes > cutoff, tied, labels.reshape(-1)[tied])

    def settle(self, compared: Compared) -> np.ndarray:
        """The mask (H, W) of what to keep. Call it in the order of images."""
        keep = compared.above
        for label in np.unique(compared.classes):
            mine = compared.tied[compared.classes == label][: self._ties[label]]
            keep.reshape(-1)[mine] = True
            self._ties[label] -= len(mine)
        return keep

    def __call__(self, labels: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Both at once."""
        return self.settle(self.compare(labels, codes))
