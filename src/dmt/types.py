"""Values that packages hand to each other: what a step sees, what a stage wants of its batches, which net is meant.

A *site* is whatever gets one label: an image in classification, a pixel in segmentation. Logits are
``(N, C, *S)`` and everything per site is ``(N, *S)``, with ``S = ()`` or ``(H, W)``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

IGNORE = -1
"""The label of a site that has none. 255 exists only inside files and the byte planes made for them."""

TRAIN = "train"
"""The kind of view that Baseline, rounds and Online ST see: labeled and unlabeled images are augmented alike."""

WEAK = "weak"
"""The kind of view that is hardly changed."""

STRONG = "strong"
"""The kind of view that is changed far: hard augmentation of images, other colors where pixels get labels."""

ProgressCallback = Callable[[int, int], None]
"""Is called with (done, total) while something takes long."""


@dataclass(frozen=True)
class Target:
    """What each site should be, and how sure its labeler was.

    Attributes:
        labels: (N, *S) int64, ``IGNORE`` where a site has no label.
        confidence: (N, *S) float32 in [0, 1]; truth has confidence 1.
        soft: (N, C) float32, what an image's labeler gave every class; None where its label alone is kept.
    """

    labels: Tensor
    confidence: Tensor
    soft: Tensor | None = None

    def take(self, rows: Tensor) -> "Target":
        """Of these samples, in this order."""
        return Target(self.labels[rows], self.confidence[rows], None if self.soft is None else self.soft[rows])

    def to(self, device: torch.device) -> "Target":
        """The same on a device."""
        soft = None if self.soft is None else self.soft.to(device)
        return Target(self.labels.to(device), self.confidence.to(device), soft)


@dataclass(frozen=True)
class Batch:
    """One step's input, augmented and on the device.

    Views of an image are made each with a geometry of its own; views of an image whose pixels get labels share one
    geometry and differ in color.

    Attributes:
        images: (L, C, H, W) float32 in [0, 1], the labeled images.
        truth: (L, *S) int64, their labels.
        views: unlabeled images, each (U, C, H, W); the key says how they were augmented.
        pseudo: the stored target of the unlabeled images, if the stage learns from a store.
        positions: (U,) int64, which of all unlabeled images these are.
        valid: (U, *S) bool, false for pixels of the window that lie outside of the image; None if every site counts.
    """

    images: Tensor
    truth: Tensor
    views: Mapping[str, Tensor] = field(default_factory=dict)
    pseudo: Target | None = None
    positions: Tensor | None = None
    valid: Tensor | None = None


class BatchShape(NamedTuple):
    """How large every batch of a stage is."""

    labeled: int  # images
    unlabeled: int
    height: int  # of every image, in pixels
    width: int

    @property
    def images(self) -> int:
        """All of them, each unlabeled one counted once."""
        return self.labeled + self.unlabeled


@dataclass(frozen=True)
class BatchPlan:
    """What a stage wants of its batches.

    Attributes:
        labeled: labeled images in each step.
        unlabeled: unlabeled images in each step.
        views: names of the views of the unlabeled images. The kind of a view is its name without digits.
        labeled_view: the kind of view that labeled images are seen in.
        seed: of the stage.
    """

    labeled: int
    unlabeled: int = 0
    views: tuple[str, ...] = ()
    labeled_view: str = TRAIN
    seed: int = 0


class FeatureMap(NamedTuple):
    """One of the maps that the decoder of a net takes."""

    width: int  # channels
    stride: int  # pixels from one feature to the next


class NetName(NamedTuple):
    """Which net of a run is meant: a stage trains one line or several, and each line may have a slow copy."""

    stage: str  # "A3"
    line: str  # "A"
    copy: str  # "raw", or "ema" for its slow copy


@dataclass(frozen=True)
class Normalization:
    """What a net expects: (x − mean) / std per channel, of images in [0, 1]."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


IMAGENET = Normalization((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
"""Of photographs, as most published nets expect them."""

PADDING = 32
"""Images of any size are padded, at the bottom and right, to multiples of this: encoders halve them five times."""


@dataclass(frozen=True)
class Sizes:
    """How many images there are to learn from; enough to count steps without opening the data."""

    labeled: int
    unlabeled: int
    everything: int
    pixels: bool = False  # then every unlabeled image teaches in every round, by those of its pixels that are kept
