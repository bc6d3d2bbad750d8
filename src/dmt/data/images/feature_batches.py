"""Batches of precomputed features: for each image, one of its stored views at random."""

from typing import NamedTuple

import numpy as np
from torch import Tensor

from dmt.core import streams, trees
from dmt.core.execution import Execution
from dmt.data.images.batches import Order, Unlabeled, kind_of
from dmt.data.sets import LabeledSet
from dmt.types import STRONG, TRAIN, Batch, BatchPlan, BatchShape, Target

GENTLE = 2
"""Number of weak views: the image and its mirror image come first. All further views, crops, are strong."""


class DrawnFeatures(NamedTuple):
    """The images and stored views of one step, as rows (position, view)."""

    labeled: Tensor  # (L, 2)
    unlabeled: tuple[Tensor, ...]  # (U, 2) for every view of the plan; positions are among the images with a target


class FeatureBatches:
    """Batches of stored features in place of images.

    Args:
        labeled: features (N, V, F) and labels.
        plan: the number of images per step, and their views.
        execution: gives the device of the batches.
        unlabeled: features of the unlabeled images; required if the plan has views.
    """

    def __init__(
        self, labeled: LabeledSet[Tensor], plan: BatchPlan, execution: Execution, unlabeled: Unlabeled | None = None
    ) -> None:
        self._plan, self._device = plan, execution.device
        self._features, self._truth = labeled.images.to(self._device), labeled.labels.to(self._device)
        self._order = Order(len(labeled), plan.labeled, plan.seed, "labeled order")
        self._unlabeled: Tensor | None = None
        self._taught: tuple[Tensor, Target] | None = None
        if plan.views:
            assert unlabeled is not None, "a plan with views needs unlabeled images"
            assert isinstance(unlabeled.images, Tensor), "features are held, or mapped into memory"
            self._unlabeled = unlabeled.images.to(self._device)
            if unlabeled.taught is not None:
                positions, target = unlabeled.taught
                self._taught = positions.to(self._device), target.to(self._device)
            count = len(unlabeled.images if unlabeled.taught is None else unlabeled.taught[0])
            self._unlabeled_order = Order(count, plan.unlabeled, plan.seed, "pseudo order")
        # a feature vector describes the whole image, so height and width are 1
        self.shape = BatchShape(plan.labeled, plan.unlabeled if plan.views else 0, 1, 1)

    def draw(self, step: int) -> DrawnFeatures:
        """Draw the images and views of a step. The result depends only on the step, not on earlier calls."""
        rng = streams.stream(self._plan.seed, "views", step)
        labeled = self._rows(self._order(step), self._features, self._plan.labeled_view, rng)
        if self._unlabeled is None:
            return DrawnFeatures(labeled, ())
        positions = self._unlabeled_order(step)
        views = (self._rows(positions, self._unlabeled, kind_of(view), rng) for view in self._plan.views)
        return DrawnFeatures(labeled, tuple(views))

    def _rows(self, positions: np.ndarray, features: Tensor, kind: str, rng: np.random.Generator) -> Tensor:
        stored = features.shape[1]
        gentle = min(GENTLE, stored)
        low = gentle if kind == STRONG and stored > gentle else 0
        high = stored if kind in (TRAIN, STRONG) else gentle
        return trees.send(np.stack([positions, rng.integers(low, high, len(positions))], 1), self._device)

    def make(self, drawn: DrawnFeatures) -> Batch:
        """Gather the batch for these draws."""
        positions, views = drawn.labeled.unbind(1)
        images, truth = self._features[positions, views].float(), self._truth[positions]
        if self._unlabeled is None:
            return Batch(images, truth)
        chosen, target = drawn.unlabeled[0][:, 0], None
        if self._taught is not None:
            target = self._taught[1].take(chosen)
            chosen = self._taught[0][chosen]
        seen = {
            name: self._unlabeled[chosen, rows[:, 1]].float()
            for name, rows in zip(self._plan.views, drawn.unlabeled, strict=True)
        }
        return Batch(images, truth, seen, target, chosen)
