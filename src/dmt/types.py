"""Types shared by all packages: targets and batches of a training step, batch plans, names of nets, sizes of data.

A *site* is whatever gets one label: an image in classification, a pixel in segmentation. Logits have shape
``(N, C, *S)`` and per-site tensors ``(N, *S)``, where ``S`` is ``()`` for images and ``(H, W)`` for pixels.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

IGNORE = -1
"""The label of sites without a label. 255 is used only in files and the uint8 arrays made for them."""

TRAIN = "train"
"""Augmentation used by Baseline, rounds and Online ST: the same for labeled and unlabeled images."""

WEAK = "weak"
"""Weak augmentation."""

STRONG = "strong"
"""Strong augmentation; in segmentation it changes colors only."""

ProgressCallback = Callable[[int, int], None]
"""Called with (done, total) during long operations."""


@dataclass(frozen=True)
class Target:
    """Labels of sites, with the confidence of whoever labeled them.

    Attributes:
        labels: (N, *S) int64, ``IGNORE`` where a site has no label.
        confidence: (N, *S) float32 in [0, 1]; ground truth has confidence 1.
        soft: (N, C) float32, the labeler's probabilities of all classes (images only); None if only labels are kept.
    """

    labels: Tensor
    confidence: Tensor
    soft: Tensor | None = None

    def take(self, rows: Tensor) -> "Target":
        """Return the target of the samples with these indices, in this order."""
        return Target(self.labels[rows], self.confidence[rows], None if self.soft is None else self.soft[rows])

    def to(self, device: torch.device) -> "Target":
        """Return the target on a device."""
        soft = None if self.soft is None else self.soft.to(device)
        return Target(self.labels.to(device), self.confidence.to(device), soft)


@dataclass(frozen=True)
class Batch:
    """Input of one training step, augmented and on the device.

    In classification, each view of an image is augmented with its own geometry. In segmentation, all views of an image
    share one geometry and differ in color only.

    Attributes:
        images: (L, C, H, W) float32 in [0, 1], the labeled images.
        truth: (L, *S) int64, their labels.
        views: views of the unlabeled images by name, each (U, C, H, W); the name tells the augmentation.
        pseudo: stored pseudo labels of the unlabeled images; None if the stage does not learn from stored labels.
        positions: (U,) int64, indices of these images among all unlabeled images.
        valid: (U, *S) bool, false for pixels of the crop that lie outside the image; None if every site counts.
    """

    images: Tensor
    truth: Tensor
    views: Mapping[str, Tensor] = field(default_factory=dict)
    pseudo: Target | None = None
    positions: Tensor | None = None
    valid: Tensor | None = None


class BatchShape(NamedTuple):
    """Shape of all batches of a stage."""

    labeled: int  # number of labeled images
    unlabeled: int
    height: int  # of every image, in pixels
    width: int

    @property
    def images(self) -> int:
        """Number of all images, each unlabeled one counted once regardless of its views."""
        return self.labeled + self.unlabeled


@dataclass(frozen=True)
class BatchPlan:
    """Composition of a stage's batches.

    Attributes:
        labeled: number of labeled images per step.
        unlabeled: number of unlabeled images per step.
        views: names of the views of the unlabeled images. A name without its digits is the kind of augmentation.
        labeled_view: the kind of augmentation of labeled images.
        seed: the stage's seed.
    """

    labeled: int
    unlabeled: int = 0
    views: tuple[str, ...] = ()
    labeled_view: str = TRAIN
    seed: int = 0


class FeatureMap(NamedTuple):
    """Width and stride of one feature map that a net's decoder takes as input."""

    width: int  # number of channels
    stride: int  # in pixels of the input image


class NetName(NamedTuple):
    """Name of one net of a run: a stage trains the nets of one or more lines, and each may have an EMA copy."""

    stage: str  # "A3"
    line: str  # "A"
    copy: str  # "raw", or "ema" for its EMA copy


@dataclass(frozen=True)
class Normalization:
    """Input normalization of a net: (x − mean) / std per channel, for images in [0, 1]."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


IMAGENET = Normalization((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
"""ImageNet statistics, as most published nets expect."""

PADDING = 32
"""Images of arbitrary size are padded at the bottom and right to multiples of this: encoders halve them five times."""


@dataclass(frozen=True)
class Sizes:
    """Numbers of training images, enough to count steps without opening the data."""

    labeled: int
    unlabeled: int
    everything: int  # all training images, which the Oracle sees with their true labels
    pixels: bool = False  # whether pixels get labels: then every round uses all unlabeled images, by their kept pixels
