"""Batches of windows of images with masks. All have the same shape, and any step can be drawn in any order."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dmt.core import codes, streams, trees
from dmt.core.execution import Execution
from dmt.data.images.batches import Order, kind_of
from dmt.data.pixels import color_views, size_groups, windows
from dmt.data.pixels.class_order import ClassOrder
from dmt.data.pixels.color_views import ColorDraws
from dmt.data.pixels.windows import Window, WindowDraws
from dmt.data.ragged import Ragged
from dmt.data.sets import LabeledSet
from dmt.errors import DataError
from dmt.types import STRONG, Batch, BatchPlan, BatchShape, Target

MEMORY_SHARE = 0.6
"""Share of a GPU's free memory that the data may occupy; nets and their activations need the rest."""


@dataclass(frozen=True)
class Unlabeled:
    """Unlabeled images and, if the stage learns from stored pseudo labels, these labels and their confidence codes.

    Attributes:
        images: color images.
        labels: uint8 planes, 255 where a pixel has no label.
        codes: int16 planes of packed `dmt.core.codes`.
    """

    images: Ragged
    labels: Ragged | None = None
    codes: Ragged | None = None

    def __post_init__(self) -> None:
        if (self.labels is None) != (self.codes is None):
            raise ValueError("stored labels come with their confidence codes")


class Source(NamedTuple):
    """Images and their label planes, from which windows are cut. An image and its planes have the same size."""

    images: Ragged
    labels: Ragged | None
    codes: Ragged | None


class Chosen(NamedTuple):
    """The images of a step, and the draws of their windows."""

    positions: Tensor  # (N,)
    windows: WindowDraws


class Crops(NamedTuple):
    """Windows of images and their planes."""

    images: Tensor  # (N, C, h, w) float32 in [0, 1]
    labels: Tensor | None  # (N, h, w) uint8, 255 where a pixel has no label; small, as it may be copied to the device
    confidence: Tensor | None  # (N, h, w) float32
    inside: Tensor | None  # (N, h, w) bool, false in padding


class OnDevice(NamedTuple):
    """The draws of a step if the data is on the device, where windows will be cut."""

    labeled: Chosen
    unlabeled: Chosen | None
    colors: tuple[ColorDraws, ...]  # for every strong view


class OnHost(NamedTuple):
    """The windows of a step if the data is on the host: already cut, and copied to the device."""

    labeled: Crops
    unlabeled: Crops | None
    positions: Tensor | None
    colors: tuple[ColorDraws, ...]


class PixelBatches:
    """Batches of random windows, cut on the device if the data fits there, otherwise on the host.

    All views of an image share its window. Each strong view additionally gets its own color augmentation, always on
    the device.

    Args:
        labeled: images and masks; masks are uint8 planes, 255 where a pixel has no label.
        plan: the number of images per step, and their views.
        window: the geometric augmentation of all images.
        execution: gives the device of the batches.
        unlabeled: the unlabeled images; required if the plan has views.
        resident: whether the data is kept on the device; None decides by the device's free memory.
        by_class: draw labeled images by class, see `ClassOrder`, instead of each equally often.
    """

    def __init__(
        self,
        labeled: LabeledSet[Ragged],
        plan: BatchPlan,
        window: Window,
        execution: Execution,
        unlabeled: Unlabeled | None = None,
        resident: bool | None = None,
        by_class: bool = False,
    ) -> None:
        known = _checked(Source(labeled.images, labeled.labels, None))
        other = None
        if plan.views:
            assert unlabeled is not None, "a plan with views needs unlabeled images"
            other = _checked(Source(unlabeled.images, unlabeled.labels, unlabeled.codes))
        self._device = execution.device
        self._resident = _fits([known, other], self._device) if resident is None else resident
        self._home = self._device if self._resident else torch.device("cpu")
        self._labeled = _moved(known, self._home)
        self._unlabeled = None if other is None else _moved(other, self._home)
        self._window, self._plan = window, plan
        self._order: Order | ClassOrder = Order(len(labeled), plan.labeled, plan.seed, "labeled order")
        if by_class:
            self._order = ClassOrder(labeled.labels, plan.labeled, plan.seed, "labeled order")
        self._unlabeled_order = None
        if other is not None:
            self._unlabeled_order = Order(len(other.images), plan.unlabeled, plan.seed, "pseudo order")
        self.shape = BatchShape(plan.labeled, plan.unlabeled if plan.views else 0, window.height, window.width)

    @property
    def _strong(self) -> list[str]:
        return [view for view in self._plan.views if kind_of(view) == STRONG]

    def draw(self, step: int) -> OnDevice | OnHost:
        """Draw the images and windows of a step. The result depends only on the step, not on earlier calls."""
        seed, count = self._plan.seed, self.shape.unlabeled  # draws of unlabeled images come first
        generator = streams.device_stream(self._home, seed, "augment", step)
        draws = self._window.draw(self.shape.images, generator, self._home)
        strokes = streams.device_stream(self._device, seed, "colors", step)
        colors = tuple(color_views.draw(count, strokes, self._device) for _ in self._strong)
        drawn = OnDevice(
            labeled=self._choice(self._order(step), draws, slice(count, None)),
            unlabeled=self._choice(self._unlabeled_order(step), draws, slice(count)) if self._unlabeled_order else None,
            colors=colors,
        )
        if self._resident:
            return drawn
        known, other = self._cut(drawn)
        positions = None if drawn.unlabeled is None else trees.send(drawn.unlabeled.positions.numpy(), self._device)
        return OnHost(
            _sent(known, self._device), None if other is None else _sent(other, self._device), positions, colors
        )

    def _choice(self, positions: np.ndarray, draws: WindowDraws, part: slice) -> Chosen:
        return Chosen(trees.send(positions, self._home), WindowDraws(*(each[part] for each in draws)))

    def _cut(self, drawn: OnDevice) -> tuple[Crops, Crops | None]:
        known = _crops(self._labeled, drawn.labeled, self._window)
        if self._unlabeled is None or drawn.unlabeled is None:
            return known, None
        return known, _crops(self._unlabeled, drawn.unlabeled, self._window)

    def make(self, drawn: OnDevice | OnHost) -> Batch:
        """Make the batch for these draws, cutting the windows if that is still to be done."""
        if isinstance(drawn, OnDevice):
            known, other = self._cut(drawn)
            positions = None if drawn.unlabeled is None else drawn.unlabeled.positions
        else:
            known, other, positions = drawn.labeled, drawn.unlabeled, drawn.positions
        assert known.labels is not None
        truth = size_groups.truth(known.labels)
        if other is None:
            return Batch(known.images, truth)
        pseudo = None
        if other.labels is not None and other.confidence is not None:
            pseudo = Target(size_groups.truth(other.labels), other.confidence)
        views = dict.fromkeys(self._plan.views, other.images)
        for view, colors in zip(self._strong, drawn.colors, strict=True):
            views[view] = color_views.apply(other.images, colors)
        return Batch(known.images, truth, views, pseudo, positions, other.inside)


def _crops(source: Source, choice: Chosen, window: Window) -> Crops:
    """Cut windows, the same for an image and all its planes."""
    positions, images = choice.positions, source.images
    grid = windows.place(window, choice.windows, images.heights[positions], images.widths[positions])
    labels = confidence = None
    if source.labels is not None:
        labels = windows.plane(source.labels, positions, grid, fill=size_groups.NO_LABEL)
    if source.codes is not None:
        packed = windows.plane(source.codes, positions, grid, fill=0)
        # no code decodes to a confidence of 0, so padding is set to 0 after decoding
        confidence = codes.decode(packed).masked_fill_(~grid.inside, 0)
    inside = grid.inside if labels is None else None  # not needed with labels, which are NO_LABEL in padding
    return Crops(windows.images(images, positions, grid), labels, confidence, inside)


def _sent(crops: Crops, device: torch.device) -> Crops:
    return Crops(
        trees.send(crops.images.numpy(), device),
        *(None if each is None else trees.send(each.numpy(), device) for each in crops[1:]),
    )


def _checked(source: Source) -> Source:
    for planes in (source.labels, source.codes):
        if planes is not None and planes.sizes != source.images.sizes:
            raise DataError("images and their labels differ in number or size; create the data or labels again")
    return source


def _moved(source: Source, device: torch.device) -> Source:
    def moved(planes: Ragged) -> Ragged:
        # data that is already on the device is not copied, so subsets go on sharing one buffer
        return planes if planes.pixels.device.type == device.type else planes.to(device)

    images, labels, packed = source
    return Source(moved(images), None if labels is None else moved(labels), None if packed is None else moved(packed))


def _fits(sources: list[Source | None], device: torch.device) -> bool:
    """Return whether a GPU has room for all sources; always true for a CPU, whose memory holds the data already."""
    if device.type != "cuda":
        return True
    planes = [each for source in sources if source is not None for each in source if each is not None]
    to_come = [each for each in planes if each.pixels.device.type != "cuda"]
    needed = sum(int((each.heights * each.widths).sum()) * each.pixels[:1].nbytes for each in to_come)
    free, _ = torch.cuda.mem_get_info(device)
    # memory that torch's allocator caches is available here, though the driver does not count it as free
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return needed <= MEMORY_SHARE * (free + kept)
