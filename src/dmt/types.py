"""The few values that every room hands around.

A *site* is whatever gets one label: an image in classification, a pixel in segmentation. Logits are
``(N, C, *S)`` and everything per site is ``(N, *S)``, with ``S = ()`` or ``(H, W)``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import Tensor

IGNORE = -1
"""The label of a site that has none. 255 exists only inside files."""

ProgressCallback = Callable[[int, int], None]
"""Is called with (done, total) while something takes long."""


@dataclass(frozen=True)
class Target:
    """What each site should be, and how sure its labeler was.

    Attributes:
        labels: (N, *S) int64, ``IGNORE`` where a site has no label.
        confidence: (N, *S) float32 in [0, 1]; truth has confidence 1.
    """

    labels: Tensor
    confidence: Tensor


@dataclass(frozen=True)
class Batch:
    """One step's input, augmented and on the device. All views of a sample share one geometry.

    Attributes:
        images: (L, C, H, W) float32 in [0, 1], the labeled images.
        truth: (L, *S) int64, their labels.
        views: unlabeled images, each (U, C, H, W); the key says how they were augmented.
        pseudo: the stored target of the unlabeled images, if the stage learns from a store.
    """

    images: Tensor
    truth: Tensor
    views: Mapping[str, Tensor] = field(default_factory=dict)
    pseudo: Target | None = None


@dataclass(frozen=True)
class Normalization:
    """What a net expects: (x − mean) / std per channel, of images in [0, 1]."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


IMAGENET = Normalization((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
"""Of photographs, as most published nets expect them."""


@dataclass(frozen=True)
class Sizes:
    """How many images there are to learn from; enough to count steps without opening the data."""

    labeled: int
    unlabeled: int
    everything: int
    pixels: bool = False  # then every unlabeled image teaches in every round, by those of its pixels that are kept
