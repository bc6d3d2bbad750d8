"""Batches of images kept on the device. All have the same shape, and any step can be drawn in any order."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dmt.core import streams, trees
from dmt.core.execution import Execution
from dmt.data.images.augment import Augment
from dmt.data.sets import LabeledSet
from dmt.data.squares import ReadAhead, Squares
from dmt.types import TRAIN, Batch, BatchPlan, BatchShape, Target


class Order:
    """An endless sequence of permutations of ``count`` positions, cut into steps of ``size``.

    A step that reaches the end of a permutation continues with the next one. So all steps have the same size, and
    no position is missing for more than two passes.
    """

    def __init__(self, count: int, size: int, *names: str | int) -> None:
        self.count, self.size = count, size
        self._names = names
        self._recent: OrderedDict[int, np.ndarray] = OrderedDict()

    def __call__(self, step: int) -> np.ndarray:
        """Return the positions of a step, (size,) int64."""
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
    """The images of one `ImageBatches` step, and the random draws of their augmentation."""

    labeled: Tensor  # (L,) positions
    unlabeled: Tensor | None  # (U,) positions among the images with a target
    augment: tuple[Any, ...]  # draws for each kind of view, in the order of `ImageBatches.kinds`
    others: Tensor | None = None  # (U, C, H, W) uint8, the unlabeled images, if they are not kept on the device


class Unlabeled(NamedTuple):
    """Unlabeled images and, if the stage learns from stored pseudo labels, the target of the kept ones."""

    images: Tensor | Squares  # (N, C, H, W) uint8
    taught: tuple[Tensor, Target] | None = None  # positions of the images with a target, and their target


class ImageBatches:
    """Batches of small images that fit on the device as uint8, where they are gathered, augmented and scaled.

    All views of one kind, and the labeled images if they use that kind, are augmented in one call. Every image has its
    own random draws.

    Args:
        labeled: images with labels.
        plan: the number of images per step, and their views.
        policies: the augmentation policy of every kind of view.
        execution: the device, and whether to compile the augmentation.
        unlabeled: the unlabeled images; required if the plan has views.
    """

    def __init__(
        self,
        labeled: LabeledSet[Tensor],
        plan: BatchPlan,
        policies: Mapping[str, Augment],
        execution: Execution,
        unlabeled: Unlabeled | None = None,
    ) -> None:
        device = execution.device
        self._plan, self._device, self._processes = plan, device, execution.processes
        self._images, self._truth = labeled.images.to(device), labeled.labels.to(device)
        self._order = Order(len(labeled), plan.labeled, plan.seed, "labeled order")
        self._unlabeled: Tensor | Squares | None = None
        self._taught: tuple[Tensor, Target] | None = None
        self._read: ReadAhead | None = None
        # gathering is not compiled: its shapes depend on the number of images, not only on the size of a step
        self._changed = execution.compiled(_changed)
        if plan.views:
            assert unlabeled is not None, "a plan with views needs unlabeled images"
            self._unlabeled = unlabeled.images.to(device)
            if unlabeled.taught is not None:
                positions, target = unlabeled.taught
                self._taught = positions.to(device), target.to(device)
            count = len(unlabeled.images if unlabeled.taught is None else unlabeled.taught[0])
            self._unlabeled_order = Order(count, plan.unlabeled, plan.seed, "pseudo order")
            if isinstance(unlabeled.images, Squares):
                order = Order(count, plan.unlabeled, plan.seed, "pseudo order")  # used by another thread
                rows = slice(None) if self._processes is None else self._processes.rows(plan.unlabeled)
                self._read = ReadAhead(partial(_read, unlabeled.images, unlabeled.taught, order, rows))
        height, width = self._images.shape[-2:]
        self.shape = BatchShape(plan.labeled, plan.unlabeled if plan.views else 0, height, width)
        self.kinds = tuple(dict.fromkeys([*map(kind_of, plan.views), plan.labeled_view]))
        self._policies = {kind: policies[kind] for kind in self.kinds}

    def draw(self, step: int) -> Drawn:
        """Draw the images and augmentation of a step. The result depends only on the step, not on earlier calls."""
        return Drawn(
            labeled=trees.send(self._order(step), self._device),
            unlabeled=None if self._unlabeled is None else trees.send(self._unlabeled_order(step), self._device),
            augment=tuple(self._draw(kind, step) for kind in self.kinds),
            others=None if self._read is None else self._others(self._read(step)),
        )

    def _others(self, mine: Tensor) -> Tensor:
        """Return the unlabeled images of a step on the device; with several processes, gather the rows that each read.

        Args:
            mine: (n, C, H, W) uint8, the rows that this process has read.
        """
        sent = trees.send(mine.numpy(), self._device)
        return sent if self._processes is None else self._processes.all_rows(sent, self.shape.unlabeled)

    def _draw(self, kind: str, step: int) -> Any:
        role = "augment" if kind == TRAIN else f"augment {kind}"
        generator = streams.device_stream(self._device, self._plan.seed, role, step)
        count = len(self._members(kind)) * self.shape.unlabeled
        count += self.shape.labeled if kind == self._plan.labeled_view else 0
        return self._policies[kind].draw(count, generator, self._device)

    def _members(self, kind: str) -> list[str]:
        return [view for view in self._plan.views if kind_of(view) == kind]

    def make(self, drawn: Drawn) -> Batch:
        """Gather and augment the batch for these draws."""
        images, truth = self._images[drawn.labeled], self._truth[drawn.labeled]
        if self._unlabeled is None or drawn.unlabeled is None:
            (draws,) = drawn.augment
            return Batch(self._changed(self._policies[self._plan.labeled_view], images, draws), truth)
        positions, target = drawn.unlabeled, None
        if self._taught is not None:
            positions = self._taught[0][drawn.unlabeled]
            target = self._taught[1].take(drawn.unlabeled)
        others = self._unlabeled[positions] if drawn.others is None else drawn.others
        views, labeled = self._views(images, others, drawn.augment)
        return Batch(labeled, truth, views, target, positions)

    def _views(self, images: Tensor, others: Tensor, draws: tuple[Any, ...]) -> tuple[dict[str, Tensor], Tensor]:
        """Return all views by name, and the augmented labeled images. Draws of unlabeled images come first."""
        made: dict[str, Tensor] = {}
        labeled = images
        for kind, drawn in zip(self.kinds, draws, strict=True):
            members = self._members(kind)
            mine = [images] if kind == self._plan.labeled_view else []
            changed = self._changed(self._policies[kind], torch.cat([others] * len(members) + mine), drawn)
            for number, view in enumerate(members):
                made[view] = changed[number * len(others) : (number + 1) * len(others)]
            if mine:
                labeled = changed[len(members) * len(others) :]
        return made, labeled


def _read(images: Squares, taught: tuple[Tensor, Target] | None, order: Order, rows: slice, step: int) -> Tensor:
    """Read the given rows of a step's unlabeled images on the host."""
    positions = torch.from_numpy(order(step)[rows])
    return images[positions if taught is None else taught[0][positions]]


def starts(images: int, count: int, wanted: Callable[[int], bool]) -> list[int]:
    """Return the first position of each wanted part, if the images are cut into parts of ``count``."""
    return [start for number, start in enumerate(range(0, images, count)) if wanted(number)]


def kind_of(view: str) -> str:
    """Return the kind of a view, its name without trailing digits: ``strong`` for ``strong2``."""
    return view.rstrip("0123456789")


def _changed(policy: Augment, images: Tensor, draws: Any) -> Tensor:
    return scale(policy.apply(images, draws))


def scale(images: Tensor) -> Tensor:
    """Convert uint8 to float32 in [0, 1], the input range of every net. Normalization is part of the net."""
    return images.float() / 255.0
