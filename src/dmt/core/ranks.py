"""The most confident sites of each class, found without sorting: one pass counts, a second marks.

What is held is a counter for every class and code, however many images there are.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from dmt.core import selection
from dmt.core.codes import LEVELS, unpack


class Cutoffs(NamedTuple):
    """Which sites of each class to keep: those above its code, and at the code itself as many as there is room for."""

    codes: Tensor  # (classes,) int64
    ties: Tensor  # (classes,) int64: how many sites with this very code, first come first served


class ClassRanks:
    """Counts how often each class was predicted with each code."""

    def __init__(self, classes: int) -> None:
        self._classes = classes
        self._counts = torch.zeros(classes * LEVELS + 1, dtype=torch.int64)  # the last: sites that do not count

    @property
    def counts(self) -> Tensor:
        """(classes, LEVELS)."""
        return self._counts[:-1].view(self._classes, LEVELS)

    @property
    def predicted(self) -> Tensor:
        """(classes,) sites of each class."""
        return self.counts.sum(1).cpu()

    def add(self, labels: Tensor, codes: Tensor, outside: Tensor | None = None) -> None:
        """Count sites, of any shape and on any device; a GPU counts them itself, and nobody waits for it.

        Args:
            labels: 0 … classes − 1.
            codes: 0 … 65,535, not packed.
            outside: true where a site does not count, e.g. padding.
        """
        if codes.dtype == torch.int16:
            raise TypeError("these codes are packed: unpack them first")
        cells = labels.long() * LEVELS + codes.long()
        if outside is not None:
            cells.masked_fill_(outside, self._classes * LEVELS)
        self._counts = self._counts.to(cells.device)
        # in place: a histogram of its own for each image would cost four times as much as the counting
        self._counts.scatter_add_(0, cells.flatten(), self._counts.new_ones(1).expand(cells.numel()))

    def cutoffs(self, fraction: float) -> Cutoffs:
        """Where to cut so that exactly ``quota(fraction, n)`` of the n sites of each class are kept."""
        quotas = torch.tensor([selection.quota(fraction, count) for count in self.predicted.tolist()])
        counts = self.counts.cpu()
        reaching = counts.flip(1).cumsum(1).flip(1)  # (classes, LEVELS): sites with this code or a higher one
        # the highest code that enough sites reach; with a quota of 0 that is the last one, and no tie is kept
        codes = (reaching >= quotas[:, None]).sum(1) - 1
        at = codes[:, None]
        above = (reaching.gather(1, at) - counts.gather(1, at)).squeeze(1)
        return Cutoffs(codes, quotas - above)


class Selector:
    """Marks what to keep, in order of images: of sites at the cutoff, the earlier images' come first."""

    def __init__(self, cutoffs: Cutoffs, device: torch.device | str = "cpu") -> None:
        self._codes, self._ties = cutoffs.codes.to(device, torch.int32), cutoffs.ties.to(device)

    def __call__(self, labels: Tensor, codes: Tensor) -> Tensor:
        """The next sites, of any shape: their labels and their codes, packed or not. True where a site is kept."""
        shape, labels, codes = labels.shape, labels.flatten(), unpack(codes).flatten()
        cutoff = self._codes[labels.long()]
        keep = codes > cutoff
        tied = (codes == cutoff).nonzero().squeeze(1)
        classes = labels[tied].long()
        counts = torch.bincount(classes, minlength=len(self._ties))
        order = classes.argsort(stable=True)
        before = torch.empty_like(tied)  # how many of its class and code came earlier
        before[order] = torch.arange(len(tied), device=tied.device) - (counts.cumsum(0) - counts)[classes[order]]
        keep[tied[before < self._ties[classes]]] = True
        self._ties = (self._ties - counts).clamp(min=0)
        return keep.view(shape)
