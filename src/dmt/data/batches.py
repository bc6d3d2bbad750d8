"""Steps of equal shape from data held on the device. Any step can be asked for, in any order."""

from collections import OrderedDict

import numpy as np
import torch
from torch import Tensor

from dmt.core import streams
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


class ImageBatches:
    """Batches of small images that fit on the device as uint8: gathered, augmented and scaled there.

    Args:
        labeled: images with truth.
        sizes: (labeled, pseudo) images in each step.
        augment: the policy for both.
        seed: of the stage.
        device: where the batches are needed.
        pseudo: unlabeled images and their stored target, if the stage has one.
        view: the key under which a batch holds the unlabeled images.
    """

    def __init__(
        self,
        labeled: LabeledSet,
        sizes: tuple[int, int],
        augment: Augment,
        seed: int,
        device: torch.device,
        pseudo: tuple[Tensor, Target] | None = None,
        view: str = "train",
    ) -> None:
        self._images, self._truth = labeled.images.to(device), labeled.labels.to(device)
        self._augment, self._seed, self._device, self._view = augment, seed, device, view
        self._order = Order(len(labeled), sizes[0], seed, "labeled order")
        self._pseudo: tuple[Tensor, Target] | None = None
        if pseudo is not None:
            images, target = pseudo
            self._pseudo = images.to(device), Target(target.labels.to(device), target.confidence.to(device))
            self._pseudo_order = Order(len(images), sizes[1], seed, "pseudo order")

    def __call__(self, step: int) -> Batch:
        """The batch of this step; the same for the same step, whatever was asked before."""
        chosen = self._positions(self._order(step))
        generator = streams.device_stream(self._device, self._seed, "augment", step)
        if self._pseudo is None:
            images = self._scaled(self._images[chosen], generator)
            return Batch(images, self._truth[chosen])
        unlabeled, target = self._pseudo
        taken = self._positions(self._pseudo_order(step))
        images = self._scaled(torch.cat([unlabeled[taken], self._images[chosen]]), generator)
        return Batch(
            images=images[len(taken) :],
            truth=self._truth[chosen],
            views={self._view: images[: len(taken)]},
            pseudo=Target(target.labels[taken], target.confidence[taken]),
        )

    def _positions(self, positions: np.ndarray) -> Tensor:
        return torch.from_numpy(positions).to(self._device, non_blocking=True)

    def _scaled(self, images: Tensor, generator: torch.Generator) -> Tensor:
        return scale(self._augment(images, generator))


def scale(images: Tensor) -> Tensor:
    """uint8 to float32 in [0, 1]: what every net of ours takes. Normalization belongs to the net."""
    return images.float().div_(255.0)
