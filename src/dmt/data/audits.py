"""Base class of audits. Only an audit knows the ground truth of unlabeled images, and training never sees it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, NamedTuple, Protocol

import torch
from torch import Tensor

from dmt.data.sets import LabeledSet, Planes, PseudoLabels

TOPS = (0.2, 0.4, 0.6, 0.8, 1.0)
"""The error of the most confident 20, 40, … 100 % of the labels is reported."""


class Weighed(NamedTuple):
    """Stored labels of some unlabeled images, with the loss weights that the finished student gives them."""

    positions: Tensor  # (n,) positions of the images, on the host
    learned: Tensor  # (n, *S) int64, the labels that the student learns (flipping changes some); IGNORE where none
    weights: Tensor  # (n, *S) loss weights
    cases: Tensor | None = None  # (n, *S) of `core.weighting.CASES`, if the weighting uses the student's opinion


Weigh = Callable[[Tensor | None], Iterable[Weighed]]
"""A function that yields the student's loss weights, batch by batch, of the images at some positions; None for all."""


class LabelingObserver(Protocol):
    """Receives labels while a teacher makes them, and returns nothing to it."""

    def see(self, positions: Tensor, labels: Tensor, codes: Tensor) -> None:
        """Receive labels and confidence codes (n, H, W) of some images, including labels that will not be kept."""

    def numbers(self) -> dict[str, Any]:
        """Return the results by name, for the stage's audit file."""


class Audit(ABC, Generic[Planes]):
    """Checks pseudo labels against ground truth that training never sees. Its numbers go into reports only.

    Attributes:
        everything: all training images with their ground truth, used only by the Oracle.
    """

    def __init__(self, truth: Planes | None, everything: LabeledSet[Planes], classes: int) -> None:
        self._truth: Planes | None = truth  # in the order of the unlabeled set; None if unknown
        self.everything: LabeledSet[Planes] = everything
        self._classes = classes

    @property
    def known(self) -> bool:
        """Whether the ground truth of the unlabeled images is known."""
        return self._truth is not None

    def observer(self) -> LabelingObserver | None:
        """Return an observer of the labels while they are made, or None if all are stored and can be judged later."""
        return None

    @abstractmethod
    def pseudo_labels(
        self, labels: PseudoLabels[Planes], weigh: Weigh | None, device: torch.device, observed: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Compute the error of stored labels, both unweighted and with the finished student's loss weights.

        Args:
            labels: the stored labels.
            weigh: computes the student's loss weights; None if all labels have the same weight.
            device: may be used for counting.
            observed: what the observer counted while the labels were made.

        Returns:
            Numbers ready for the journal; None where nothing could be counted. ``images`` of the ``images_all``
            unlabeled images were judged. Only ``error_top`` and ``error_kept_all`` refer to all of them.
        """

    def mask(self, position: int) -> Tensor | None:
        """Return the ground-truth mask of one unlabeled image, (H, W) uint8, for the report; None if there is none."""
        return None
