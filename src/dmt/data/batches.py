"""Steps of equal shape from data held on the device. Any step can be asked for, in any order."""

from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dmt.core import streams, trees
from dmt.core.execution import Execution
from dmt.data.augment import Augment
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
        pseudo: unlabeled images, and their stored target if the stage has one.
        view: the key under which a batch holds the unlabeled images.
    """

    def __init__(
        self,
        labeled: LabeledSet[Tensor],
        sizes: tuple[int, int],
        augment: Augment,
        seed: int,
        execution: Execution,
        pseudo: tuple[Tensor, Target | None] | None = None,
        view: str = "train",
    ) -> None:
        device = execution.device
        self._images, self._truth = labeled.images.to(device), labeled.labels.to(device)
        self._augment, self._seed, self._device, self._view = augment, seed, device, view
        self._order = Order(len(labeled), sizes[0], seed, "labeled order")
        self._pseudo: tuple[Tensor, Target | None] | None = None
        self.size = sum(sizes) if pseudo is not None else sizes[0]
        # gathering stays outside: its shapes depend on the number of images, the rest only on the size of a step
        self._changed = execution.compiled(_changed)
        if pseudo is not None:
            images, target = pseudo
            moved = None if target is None else Target(target.labels.to(device), target.confidence.to(device))
            self._pseudo = images.to(device), moved
            self._pseudo_order = Order(len(images), sizes[1], seed, "pseudo order")

    def draw(self, step: int) -> Drawn:
        """The luck of this step; the same for the same step, whatever was asked before."""
        generator = streams.device_stream(self._device, self._seed, "augment", step)
        return Drawn(
            labeled=trees.send(self._order(step), self._device),
            pseudo=None if self._pseudo is None else trees.send(self._pseudo_order(step), self._device),
            augment=self._augment.draw(self.size, generator, self._device),
        )

    def make(self, drawn: Drawn) -> Batch:
        """The batch that was drawn."""
        images, truth = self._images[drawn.labeled], self._truth[drawn.labeled]
        if self._pseudo is None or drawn.pseudo is None:
            return Batch(self._changed(self._augment, images, drawn.augment), truth)
        unlabeled, target = self._pseudo
        count = len(drawn.pseudo)
        images = self._changed(self._augment, torch.cat([unlabeled[drawn.pseudo], images]), drawn.augment)
        return Batch(
            images=images[count:],
            truth=truth,
            views={self._view: images[:count]},
            pseudo=None if target is None else Target(target.labels[drawn.pseudo], target.confidence[drawn.pseudo]),
        )


def _changed(policy: Augment, images: Tensor, draws: Any) -> Tensor:
    return scale(policy.apply(images, draws))


def scale(images: Tensor) -> Tensor:
    """uint8 to float32 in [0, 1]: what every net of ours takes. Normalization belongs to the net."""
    return images.float() / 255.0
