"""Steps of equal shape from data held on the device. Any step can be asked for, in any order."""

from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dmt.core import streams, trees
from dmt.core.execution import Execution
from dmt.data.images.augment import Augment
from dmt.data.sets import LabeledSet
from dmt.types import Batch, Target


class Order:
    """An endless row of permutations of ``count`` positions, cut into steps of ``size``.

    A step that reaches the end of one permutation is filled from the next, so that every step has one shape and
    no position waits more than two passes.
    """

    def __init__(self, count: int, size: int, *names: str | int) -> None:
        self.count, self.size = count, size
        self._names = names
        self._recent: OrderedDict[int, np.ndarray] = OrderedDict()

    def __call__(self, step: int) -> np.ndarray:
        """Positions of this step, (size,) int64."""
        start = step * self.size
        first, last = start // self.count, (start + self.size - 1) // self.count
        row = np.concatenate([self._permutation(number) for number in range(first, last + 1)])
        offset = start - first * self.count
        return row[offset : offset + self.size]

    def _permutation(self, number: int) -> np.ndarray:
        if number not in self._recent:
            self._recent[number] = streams.stream(*self._names, number).permutation(self.count)
            if len(self._recent) > 2:
                self._recent.popitem(last=False)
        return self._recent[number]


class Drawn(NamedTuple):
    """What a step of `ImageBatches` takes: which images, and their luck."""

    labeled: Tensor  # (L,) positions
    pseudo: Tensor | None  # (U,) positions
    augment: Any


class ImageBatches:
    """Batches of small images that fit on the device as uint8: gathered, augmented and scaled there.

    Args:
        labeled: images with truth.
        sizes: (labeled, pseudo) images in each step.
        augment: the policy for both.
        seed: of the stage.
        execution: where the batches are needed, and whether to compile their making.
        pseudo: unlabeled images, with the positions and the stored target of those that teach; without, all do.
        view: the key under which a batch holds the unlabeled images.
    """

    def __init__(
        self,
        labeled: LabeledSet[Tensor],
        sizes: tuple[int, int],
        augment: Augment,
        seed: int,
        execution: Execution,
        pseudo: tuple[Tensor, tuple[Tensor, Target] | None] | None = None,
        view: str = "train",
    ) -> None:
        device = execution.device
        self._images, self._truth = labeled.images.to(device), labeled.labels.to(device)
        self._augment, self._seed, self._device, self._view = augment, seed, device, view
        self._order = Order(len(labeled), sizes[0], seed, "labeled order")
        self._unlabeled: Tensor | None = None
        self._taught: tuple[Tensor, Target] | None = None
        self.size = sum(sizes) if pseudo is not None else sizes[0]
        # gathering stays outside: its shapes depend on the number of images, the rest only on the size of a step
        self._changed = execution.compiled(_changed)
        if pseudo is not None:
            self._unlabeled = pseudo[0].to(device)
            if pseudo[1] is not None:
                positions, target = pseudo[1]
                moved = Target(target.labels.to(device), target.confidence.to(device))
                self._taught = positions.to(device), moved
            count = len(pseudo[0]) if pseudo[1] is None else len(pseudo[1][0])
            self._pseudo_order = Order(count, sizes[1], seed, "pseudo order")

    def draw(self, step: int) -> Drawn:
        """The luck of this step; the same for the same step, whatever was asked before."""
        generator = streams.device_stream(self._device, self._seed, "augment", step)
        return Drawn(
            labeled=trees.send(self._order(step), self._device),
            pseudo=None if self._unlabeled is None else trees.send(self._pseudo_order(step), self._device),
            augment=self._augment.draw(self.size, generator, self._device),
        )

    def make(self, drawn: Drawn) -> Batch:
        """The batch that was drawn."""
        images, truth = self._images[drawn.labeled], self._truth[drawn.labeled]
        if self._unlabeled is None or drawn.pseudo is None:
            return Batch(self._changed(self._augment, images, drawn.augment), truth)
        where, target = drawn.pseudo, None
        if self._taught is not None:
            where = self._taught[0][drawn.pseudo]
            stored = self._taught[1]
            target = Target(stored.labels[drawn.pseudo], stored.confidence[drawn.pseudo])
        count = len(where)
        images = self._changed(self._augment, torch.cat([self._unlabeled[where], images]), drawn.augment)
        return Batch(
            images=images[count:],
            truth=truth,
            views={self._view: images[:count]},
            pseudo=target,
        )


def _changed(policy: Augment, images: Tensor, draws: Any) -> Tensor:
    return scale(policy.apply(images, draws))


def scale(images: Tensor) -> Tensor:
    """uint8 to float32 in [0, 1]: what every net of ours takes. Normalization belongs to the net."""
    return images.float() / 255.0
