"""The interface between training and a task."""

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
"""Greatest number of images used to re-estimate a net's BatchNorm statistics; more would not change them."""


class Batches(Protocol):
    """The batches of a stage. Steps can be drawn in any order, so that a run can resume and read ahead.

    `draw` is a little work on the host; `make` is static tensor code that can be compiled and captured in a CUDA graph.
    """

    shape: BatchShape  # of every batch

    def draw(self, step: int) -> Any:
        """Draw the images and augmentation of a step, as a tree of tensors on the device."""

    def make(self, drawn: Any) -> Batch:
        """Make the batch for these draws."""


class View(NamedTuple):
    """A batch for inference: some images of a set, as a net sees them outside of training."""

    positions: Tensor  # (n,) int64, on the host: positions of the images in the set
    images: Tensor  # (n, C, H, W) in [0, 1], on the device
    truth: Tensor | None  # (n, *S) int64, IGNORE where a site has no label; None if the set has no ground truth
    sizes: Sequence[tuple[int, int]] = ()  # (height, width) of each image without padding; empty if none is padded


Wanted = Callable[[int], bool]
"""Returns whether the view of the given number, counted from 0, is wanted."""


def every(number: int) -> bool:
    return True


class Task(ABC):
    """Data ready for training: the classes, four sets, and how batches are made of them. It knows no method."""

    pixels: ClassVar[bool]
    """Whether every pixel gets a label (segmentation) or every image (classification)."""

    samples: ClassVar[int] = 0
    """Number of unlabeled images whose labels and predictions the report shows as pictures, round by round."""

    classes: tuple[str, ...]
    labeled: LabeledSet[Any]
    unlabeled: UnlabeledSet[Any]
    validation: LabeledSet[Any]
    test: LabeledSet[Any]

    @property
    def colors(self) -> tuple[tuple[int, int, int], ...]:
        """The (red, green, blue) of each class in segmentation; empty in classification."""
        return ()

    @abstractmethod
    def net_spec(self, name: str) -> NetSpec:
        """Return the specification of a net called ``name`` for this task."""

    @abstractmethod
    def batches(
        self, labeled: LabeledSet[Any], pseudo: PseudoLabels[Any] | None, plan: BatchPlan, execution: Execution
    ) -> Batches:
        """Return training batches of labeled images and, if the plan has views, of unlabeled images.

        Args:
            labeled: the labeled images to train on.
            pseudo: stored pseudo labels of the unlabeled images; None for batches without pseudo labels.
            plan: the number of images per step, and their views.
            execution: where the batches are needed, and whether to compile.
        """

    @abstractmethod
    def views(
        self, images: UnlabeledSet[Any] | LabeledSet[Any], device: torch.device, wanted: Wanted = every
    ) -> Iterator[View]:
        """Yield all images for inference, each once. Views that are not wanted are skipped without being read."""

    @abstractmethod
    def logits(self, view: View, seen: LabelingView, net: Callable[[Tensor], Tensor]) -> Tensor:
        """Compute the logits (n, C, *S) of a view's images that the net sees as in ``seen``, mirrored or resized.

        Logits are aligned with the sites of the original images.
        """

    @abstractmethod
    def target(self, pseudo: PseudoLabels[Any], positions: Tensor, view: View) -> Target:
        """Return the stored labels (n, *S) of a view's images, which are at these positions, on the view's device."""

    def clean_images(self, seed: int, device: torch.device) -> Iterator[Tensor]:
        """Yield at most `CLEAN` random unlabeled images without augmentation.

        All batches have as many images as the first one; batches of another number are skipped.
        """
        order = streams.stream(seed, "clean images").permutation(len(self.unlabeled))[:CLEAN]
        size = None
        for view in self.views(self.unlabeled.take(torch.from_numpy(order)), device):
            size = size or len(view.images)
            if len(view.images) == size:
                yield view.images

    def meter(self, device: torch.device) -> Confusion:
        """Return an empty confusion matrix."""
        return Confusion(len(self.classes), device)

    def images_to_label(self) -> float:
        """Return the work of labeling all unlabeled images, in images of the training size, for forecasts."""
        return float(len(self.unlabeled))

    def sizes(self, everything: int) -> Sizes:
        """Return the numbers of images, as counted: a folder may hold fewer than the complete data set.

        Args:
            everything: number of all training images with ground truth, which only the Oracle uses.
        """
        return Sizes(len(self.labeled), len(self.unlabeled), everything, self.pixels)
