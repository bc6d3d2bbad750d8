"""Select the most confident sites of each class in two passes without sorting: the first counts, the second marks.

The only state is a counter per class and confidence code, however many images there are.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from dmt.core import selection
from dmt.core.codes import LEVELS, unpack


class Cutoffs(NamedTuple):
    """Which sites of each class to keep: those above a cutoff code, and a number of those exactly at it."""

    codes: Tensor  # (classes,) int64, the cutoff code
    ties: Tensor  # (classes,) int64, how many sites with exactly this code to keep, the earliest first


class ClassRanks:
    """Counts how often each class was predicted with each code."""

    def __init__(self, classes: int) -> None:
        self._classes = classes
        self._counts = torch.zeros(classes * LEVELS + 1, dtype=torch.int64)  # the last one is for ignored sites

    @property
    def counts(self) -> Tensor:
        """Number of sites by predicted class and code, (classes, LEVELS)."""
        return self._counts[:-1].view(self._classes, LEVELS)

    @property
    def predicted(self) -> Tensor:
        """Number of sites by predicted class, (classes,), on the host."""
        return self.counts.sum(1).cpu()

    def add(self, labels: Tensor, codes: Tensor, outside: Tensor | None = None) -> None:
        """Count sites of any shape, on their own device, without synchronizing with the host.

        Args:
            labels: predicted classes, 0 … classes − 1.
            codes: codes 0 … 65,535, not packed.
            outside: true where a site is ignored, e.g. padding.
        """
        if codes.dtype == torch.int16:
            raise TypeError("these codes are packed: unpack them first")
        cells = labels.long() * LEVELS + codes.long()
        if outside is not None:
            cells.masked_fill_(outside, self._classes * LEVELS)
        self._counts = self._counts.to(cells.device)
        # in place: allocating a histogram per image would cost four times as much as the counting
        self._counts.scatter_add_(0, cells.flatten(), self._counts.new_ones(1).expand(cells.numel()))

    def cutoffs(self, fraction: float) -> Cutoffs:
        """Return the cutoffs that keep exactly ``quota(fraction, n)`` of the n sites of each class."""
        quotas = torch.tensor([selection.quota(fraction, count) for count in self.predicted.tolist()])
        counts = self.counts.cpu()
        reaching = counts.flip(1).cumsum(1).flip(1)  # (classes, LEVELS): sites with this code or a higher one
        # the highest code that enough sites reach; with a quota of 0, the last code, and none of its sites is kept
        codes = (reaching >= quotas[:, None]).sum(1) - 1
        at = codes[:, None]
        above = (reaching.gather(1, at) - counts.gather(1, at)).squeeze(1)
        return Cutoffs(codes, quotas - above)


class Selector:
    """Marks the sites to keep. Sites must come in the order of images, since at the cutoff the earliest are kept."""

    def __init__(self, cutoffs: Cutoffs, device: torch.device | str = "cpu") -> None:
        self._codes, self._ties = cutoffs.codes.to(device, torch.int32), cutoffs.ties.to(device)

    def __call__(self, labels: Tensor, codes: Tensor) -> Tensor:
        """Return which of the next sites, of any shape, are kept, given their labels and codes, packed or not."""
        shape, labels, codes = labels.shape, labels.flatten(), unpack(codes).flatten()
        cutoff = self._codes[labels.long()]
        keep = codes > cutoff
        tied = (codes == cutoff).nonzero().squeeze(1)
        classes = labels[tied].long()
        counts = torch.bincount(classes, minlength=len(self._ties))
        order = classes.argsort(stable=True)
        before = torch.empty_like(tied)  # rank of each tied site among those of its class in this call
        before[order] = torch.arange(len(tied), device=tied.device) - (counts.cumsum(0) - counts)[classes[order]]
        keep[tied[before < self._ties[classes]]] = True
        self._ties = (self._ties - counts).clamp(min=0)
        return keep.view(shape)
