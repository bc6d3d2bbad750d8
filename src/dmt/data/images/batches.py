"""Steps of equal shape from data held on the device. Any step can be asked for, in any order."""

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
    """What a step of `ImageBatches` takes: which images, and how each kind of view is made."""

    labeled: Tensor  # (L,) positions
    unlabeled: Tensor | None  # (U,) positions among those that teach
    augment: tuple[Any, ...]  # draws of each kind of view, in the order of `ImageBatches.kinds`
    others: Tensor | None = None  # (U, C, H, W) uint8, the unlabeled images, where they are not held


class Unlabeled(NamedTuple):
    """Unlabeled images and, if the stage learns from a store, which of them teach what."""

    images: Tensor | Squares  # (N, C, H, W) uint8
    taught: tuple[Tensor, Target] | None = None  # positions of those that teach, and their target


class ImageBatches:
    """Batches of small images that fit on the device as uint8: gathered, augmented and scaled there.

    Views of one kind, and labeled images seen in that kind, are augmented together, each image by draws of its own.

    Args:
        labeled: images with truth.
        plan: how many images of which views each step takes.
        policies: the augmentation of every kind of view.
        execution: where the batches are needed, and whether to compile their making.
        unlabeled: the unlabeled images, if the plan asks for any.
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
        # gathering stays outside: its shapes depend on the number of images, the rest only on the size of a step
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
                order = Order(count, plan.unlabeled, plan.seed, "pseudo order")  # for another thread
                rows = slice(None) if self._processes is None else self._processes.rows(plan.unlabeled)
                self._read = ReadAhead(partial(_read, unlabeled.images, unlabeled.taught, order, rows))
        height, width = self._images.shape[-2:]
        self.shape = BatchShape(plan.labeled, plan.unlabeled if plan.views else 0, height, width)
        self.kinds = tuple(dict.fromkeys([*map(kind_of, plan.views), plan.labeled_view]))
        self._policies = {kind: policies[kind] for kind in self.kinds}

    def draw(self, step: int) -> Drawn:
        """What this step takes; the same for the same step, whatever was asked before."""
        return Drawn(
            labeled=trees.send(self._order(step), self._device),
            unlabeled=None if self._unlabeled is None else trees.send(self._unlabeled_order(step), self._device),
            augment=tuple(self._draw(kind, step) for kind in self.kinds),
            others=None if self._read is None else self._others(self._read(step)),
        )

    def _others(self, mine: Tensor) -> Tensor:
        """The unlabeled images of a step, of which several processes have read their own part each."""
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
        """The batch that was drawn."""
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
        """All views by name, and the labeled images in theirs. Within a kind unlabeled images come first."""
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
    """Some of the unlabeled images of a step, on the host."""
    positions = torch.from_numpy(order(step)[rows])
    return images[positions if taught is None else taught[0][positions]]


def starts(images: int, count: int, wanted: Callable[[int], bool]) -> list[int]:
    """Where parts of so many images begin, of those parts that are wanted by their number."""
    return [start for number, start in enumerate(range(0, images, count)) if wanted(number)]


def kind_of(view: str) -> str:
    """How a view is made: its name without digits."""
    return view.rstrip("0123456789")


def _changed(policy: Augment, images: Tensor, draws: Any) -> Tensor:
    return scale(policy.apply(images, draws))


def scale(images: Tensor) -> Tensor:
    """uint8 to float32 in [0, 1]: what every net of ours takes. Normalization belongs to the net."""
    return images.float() / 255.0
