"""What training asks of a task."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor

from dmt.core import streams
from dmt.core.execution import Execution
from dmt.core.labeling_views import LabelingView
from dmt.core.metrics import Confusion
from dmt.data.sets import LabeledSet, PseudoLabels, UnlabeledSet
from dmt.models.build import NetSpec
from dmt.types import Batch, BatchPlan, BatchShape, Sizes, Target

CLEAN = 10_000
"""Images that statistics of a net are taken from; more would not change them."""


class Batches(Protocol):
    """The batches of a stage. Any step can be drawn, in any order: so a run resumes, and may read ahead.

    Drawing is small work for the host; making is static tensor code that can be compiled and recorded.
    """

    shape: BatchShape  # of every batch

    def draw(self, step: int) -> Any:
        """What the step takes: a tree of tensors on the device."""

    def make(self, drawn: Any) -> Batch:
        """The batch of what was drawn."""


class View(NamedTuple):
    """Some images of a set, as a net sees them outside of training."""

    positions: Tensor  # (n,) int64, on the host: which images of the set these are
    images: Tensor  # (n, C, H, W) in [0, 1], on the device
    truth: Tensor | None  # (n, *S) int64, IGNORE where there is none; None if the set has no truth
    sizes: Sequence[tuple[int, int]] = ()  # height and width of each without padding; empty if nothing is padded


Wanted = Callable[[int], bool]
"""Whether the view of this number, from 0 on, is wanted."""


def every(number: int) -> bool:
    return True


class Task(ABC):
    """Data ready for training: classes, four splits, and how they become batches. It knows no method."""

    pixels: ClassVar[bool]
    """Whether every pixel gets a label, or every image."""

    samples: ClassVar[int] = 0
    """Unlabeled images whose labels and predictions the report shows as pictures, round by round."""

    classes: tuple[str, ...]
    labeled: LabeledSet[Any]
    unlabeled: UnlabeledSet[Any]
    validation: LabeledSet[Any]
    test: LabeledSet[Any]

    @property
    def colors(self) -> tuple[tuple[int, int, int], ...]:
        """(red, green, blue) of the classes, where pixels are shown."""
        return ()

    @abstractmethod
    def net_spec(self, name: str) -> NetSpec:
        """What a net called ``name`` must fit."""

    @abstractmethod
    def batches(
        self, labeled: LabeledSet[Any], pseudo: PseudoLabels[Any] | None, plan: BatchPlan, execution: Execution
    ) -> Batches:
        """Training batches of labeled images and, if the plan asks for them, of unlabeled ones.

        Args:
            pseudo: stored labels of the unlabeled images, or None: then those come without.
        """

    @abstractmethod
    def views(
        self, images: UnlabeledSet[Any] | LabeledSet[Any], device: torch.device, wanted: Wanted = every
    ) -> Iterator[View]:
        """All images for inference, each once; views that are not wanted are left out, and their images not read."""

    @abstractmethod
    def logits(self, view: View, seen: LabelingView, net: Callable[[Tensor], Tensor]) -> Tensor:
        """What a net says of a view's images if it sees them mirrored or resized: (n, C, *S), site by site."""

    @abstractmethod
    def target(self, pseudo: PseudoLabels[Any], positions: Tensor, view: View) -> Target:
        """Stored labels of a view's images, which are at these positions: (n, *S) on the view's device."""

    def clean_images(self, seed: int, device: torch.device) -> Iterator[Tensor]:
        """Unlabeled images as they are, at most `CLEAN`, in batches of one size that are drawn at random."""
        order = streams.stream(seed, "clean images").permutation(len(self.unlabeled))[:CLEAN]
        size = None
        for view in self.views(self.unlabeled.take(torch.from_numpy(order)), device):
            size = size or len(view.images)
            if len(view.images) == size:
                yield view.images

    def meter(self, device: torch.device) -> Confusion:
        """A fresh score keeper."""
        return Confusion(len(self.classes), device)

    def images_to_label(self) -> float:
        """Images of the size that training sees which a teacher looks at, for forecasts."""
        return float(len(self.unlabeled))

    def sizes(self, everything: int) -> Sizes:
        """Counted, not looked up: a folder may hold fewer images than its data set is known for."""
        return Sizes(len(self.labeled), len(self.unlabeled), everything, self.pixels)
