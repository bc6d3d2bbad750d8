"""Steps of equal shape from images with masks of any size. Any step can be asked for, in any order."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dmt.core import codes, streams, trees
from dmt.core.execution import Execution
from dmt.data.images.batches import Order
from dmt.data.pixels import size_groups, windows
from dmt.data.pixels.windows import Window, WindowDraws
from dmt.data.ragged import Ragged
from dmt.data.sets import LabeledSet
from dmt.errors import DataError
from dmt.types import Batch, Target

MEMORY_SHARE = 0.6
"""How much of a GPU's free memory the data may take; nets and their activations need the rest."""


@dataclass(frozen=True)
class Unlabeled:
    """Unlabeled images and, if the stage learns from a store, its labels and confidence codes for them.

    Attributes:
        images: color images.
        labels: uint8 planes, 255 where a pixel has no label.
        codes: int16 planes of `dmt.core.codes`.
    """

    images: Ragged
    labels: Ragged | None = None
    codes: Ragged | None = None

    def __post_init__(self) -> None:
        if (self.labels is None) != (self.codes is None):
            raise ValueError("stored labels come with their confidence codes")


class Source(NamedTuple):
    """Where crops are taken from: images and their planes, image by image of one size."""

    images: Ragged
    labels: Ragged | None
    codes: Ragged | None


class Choice(NamedTuple):
    """Which images a step takes, and their luck."""

    positions: Tensor  # (N,)
    luck: WindowDraws


class Crops(NamedTuple):
    """Windows of images and their planes."""

    images: Tensor  # (N, C, h, w) float32 in [0, 1]
    labels: Tensor | None  # (N, h, w) uint8, 255 where a pixel has no label: compact, as it may have to travel
    confidence: Tensor | None  # (N, h, w) float32


class Drawn(NamedTuple):
    """What a step takes where the data is on the device."""

    labeled: Choice
    unlabeled: Choice | None


class Cut(NamedTuple):
    """What a step takes where the data is on the host."""

    labeled: Crops
    unlabeled: Crops | None


class PixelBatches:
    """Batches of random windows, cut on the device if the data fits there, else on the host.

    Args:
        labeled: images and masks; masks are uint8 planes, 255 where a pixel has no label.
        sizes: (labeled, unlabeled) images in each step.
        window: the augmentation of both.
        seed: of the stage.
        execution: where the batches are needed.
        unlabeled: the unlabeled images, if the stage has any.
        view: the key under which a batch holds them.
        resident: whether the data is kept on the device; None lets the device's free memory decide.
    """

    def __init__(
        self,
        labeled: LabeledSet[Ragged],
        sizes: tuple[int, int],
        window: Window,
        seed: int,
        execution: Execution,
        unlabeled: Unlabeled | None = None,
        view: str = "train",
        resident: bool | None = None,
    ) -> None:
        known = _checked(Source(labeled.images, labeled.labels, None))
        other = None if unlabeled is None else _checked(Source(unlabeled.images, unlabeled.labels, unlabeled.codes))
        self._device = execution.device
        self._resident = _fits([known, other], self._device) if resident is None else resident
        self._home = self._device if self._resident else torch.device("cpu")
        self._labeled = _moved(known, self._home)
        self._unlabeled = None if other is None else _moved(other, self._home)
        self._window, self._seed, self._view = window, seed, view
        self._order = Order(len(labeled), sizes[0], seed, "labeled order")
        self._pseudo_order = None if other is None else Order(len(other.images), sizes[1], seed, "pseudo order")
        self.size = sizes[0] if other is None else sum(sizes)

    def draw(self, step: int) -> Drawn | Cut:
        """What this step takes; the same for the same step, whatever was asked before."""
        generator = streams.device_stream(self._home, self._seed, "augment", step)
        luck = self._window.draw(self.size, generator, self._home)
        count = self.size - self._order.size  # unlabeled images come first
        drawn = Drawn(
            labeled=self._choice(self._order(step), luck, slice(count, None)),
            unlabeled=self._choice(self._pseudo_order(step), luck, slice(count)) if self._pseudo_order else None,
        )
        if self._resident:
            return drawn
        known, other = self._cut(drawn)
        return Cut(_sent(known, self._device), None if other is None else _sent(other, self._device))

    def _choice(self, positions: np.ndarray, luck: WindowDraws, part: slice) -> Choice:
        return Choice(trees.send(positions, self._home), WindowDraws(*(each[part] for each in luck)))

    def _cut(self, drawn: Drawn) -> Cut:
        known = _crops(self._labeled, drawn.labeled, self._window)
        if self._unlabeled is None or drawn.unlabeled is None:
            return Cut(known, None)
        return Cut(known, _crops(self._unlabeled, drawn.unlabeled, self._window))

    def make(self, drawn: Drawn | Cut) -> Batch:
        """The batch that was drawn."""
        known, other = self._cut(drawn) if isinstance(drawn, Drawn) else drawn
        assert known.labels is not None
        truth = size_groups.truth(known.labels)
        if other is None:
            return Batch(known.images, truth)
        pseudo = None
        if other.labels is not None and other.confidence is not None:
            pseudo = Target(size_groups.truth(other.labels), other.confidence)
        return Batch(known.images, truth, {self._view: other.images}, pseudo)


def _crops(source: Source, choice: Choice, window: Window) -> Crops:
    """One geometry for an image and all its planes."""
    positions, images = choice.positions, source.images
    grid = windows.place(window, choice.luck, images.heights[positions], images.widths[positions])
    labels = confidence = None
    if source.labels is not None:
        labels = windows.plane(source.labels, positions, grid, fill=size_groups.NO_LABEL)
    if source.codes is not None:
        packed = windows.plane(source.codes, positions, grid, fill=0)
        # no code stands for a confidence of 0, so padding is set after decoding
        confidence = codes.decode(packed).masked_fill_(~grid.inside, 0)
    return Crops(windows.images(images, positions, grid), labels, confidence)


def _sent(crops: Crops, device: torch.device) -> Crops:
    def sent(crop: Tensor) -> Tensor:
        return trees.send(crop.numpy(), device)

    images, labels, confidence = crops
    return Crops(
        sent(images), None if labels is None else sent(labels), None if confidence is None else sent(confidence)
    )


def _checked(source: Source) -> Source:
    for planes in (source.labels, source.codes):
        if planes is not None and planes.sizes != source.images.sizes:
            raise DataError("images and their label planes differ in number or size; make the data or labels anew")
    return source


def _moved(source: Source, device: torch.device) -> Source:
    def moved(planes: Ragged) -> Ragged:
        # what is there already stays shared, e.g. the host's buffer among many subsets
        return planes if planes.pixels.device.type == device.type else planes.to(device)

    images, labels, packed = source
    return Source(moved(images), None if labels is None else moved(labels), None if packed is None else moved(packed))


def _fits(sources: list[Source | None], device: torch.device) -> bool:
    """Whether a GPU has room for all of it; anywhere else the data is where it is needed already."""
    if device.type != "cuda":
        return True
    planes = [each for source in sources if source is not None for each in source if each is not None]
    to_come = [each for each in planes if each.pixels.device.type != "cuda"]
    needed = sum(int((each.heights * each.widths).sum()) * each.pixels[:1].nbytes for each in to_come)
    free, _ = torch.cuda.mem_get_info(device)
    # torch keeps what earlier stages gave back: free to us, though not to the driver
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return needed <= MEMORY_SHARE * (free + kept)
