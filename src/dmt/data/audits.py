"""What every audit does. An audit alone knows the truth of unlabeled images, and gives nothing to training."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, NamedTuple, Protocol

import torch
from torch import Tensor

from dmt.data.sets import LabeledSet, Planes, PseudoLabels

TOPS = (0.2, 0.4, 0.6, 0.8, 1.0)
"""Shares of the most confident labels whose error is reported."""


class Weighed(NamedTuple):
    """Stored labels of some unlabeled images, as their finished student counts them."""

    positions: Tensor  # (n,) of the images, on the host
    learned: Tensor  # (n, *S) int64, what the student learns: flipping changes labels. IGNORE where nothing
    weights: Tensor  # (n, *S), how much it counts
    cases: Tensor | None = None  # (n, *S) of `core.weighting.CASES`, if the student is asked


Weigh = Callable[[Tensor | None], Iterable[Weighed]]
"""Has the student weigh the images at these positions, or all of them, batch by batch."""


class LabelingObserver(Protocol):
    """Sees labels while a teacher makes them, and returns nothing to it."""

    def see(self, positions: Tensor, labels: Tensor, codes: Tensor) -> None:
        """Labels and confidence codes (n, H, W) of some images, those that will not be kept among them."""

    def numbers(self) -> dict[str, Any]:
        """For the stage's audit file, by name."""


class Audit(ABC, Generic[Planes]):
    """Checks pseudo labels against the truth that training never sees. It returns numbers for the report alone.

    Attributes:
        everything: all training images with their truth, for the Oracle alone.
    """

    def __init__(self, truth: Planes | None, everything: LabeledSet[Planes], classes: int) -> None:
        self._truth: Planes | None = truth  # in the order of the unlabeled set; None if nobody knows it
        self.everything: LabeledSet[Planes] = everything
        self._classes = classes

    @property
    def known(self) -> bool:
        """Whether anybody knows the truth of the unlabeled images."""
        return self._truth is not None

    def observer(self) -> LabelingObserver | None:
        """Looks at labels while they are made, if some of them will not be stored and could not be judged later."""
        return None

    @abstractmethod
    def pseudo_labels(
        self, labels: PseudoLabels[Planes], weigh: Weigh | None, device: torch.device, observed: Mapping[str, Any]
    ) -> dict[str, Any]:
        """How wrong stored labels are, plain and as the finished student weighs them.

        Args:
            weigh: None if the student counted all labels alike.
            device: may do the counting.
            observed: what the observer counted while they were made.

        Returns:
            Numbers ready for the journal; None where nothing could be counted. ``images`` says of how many of the
            ``images_all`` unlabeled images they are. ``error_top`` and ``error_kept_all`` are of all.
        """

    def mask(self, position: int) -> Tensor | None:
        """The truth of one unlabeled image, (H, W) uint8, for pictures in the report; None if there is none."""
        return None
