"""Arrays as nets see them: rows of features standardized, images as bytes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dmt.data.images import augment
from dmt.data.sets import LabeledSet, UnlabeledSet
from dmt.tasks.classification import Classification
from dmt.tasks.features import FeatureTask
from dmt.types import Normalization

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Sets:
    """Samples to learn from."""

    labeled: LabeledSet[Tensor]
    unlabeled: UnlabeledSet[Tensor]

    @classmethod
    def of(cls, samples: Tensor, labeled: Array, codes: Array, unlabeled: Array) -> "Sets":
        """The samples at some positions with labels, those at others without."""
        known, pool = torch.from_numpy(labeled), torch.from_numpy(unlabeled)
        truth = torch.from_numpy(codes)
        return cls(LabeledSet(_ids(labeled), samples[known], truth), UnlabeledSet(_ids(unlabeled), samples[pool]))


@dataclass(frozen=True)
class Rows:
    """Rows of features, (n, F).

    Attributes:
        mean, scale: of each feature, over labeled and unlabeled samples.
    """

    mean: Array
    scale: Array

    @classmethod
    def seen(cls, samples: Array) -> "Rows":
        """As these samples are."""
        values = samples.astype(np.float64)
        scale = values.std(0)
        # a feature that hardly varies is as good as constant
        constant = scale <= 10 * np.finfo(np.float64).eps * np.abs(values).max(0, initial=0.0)
        return cls(values.mean(0), np.where(constant, 1.0, scale))

    @property
    def size(self) -> tuple[int, ...]:
        """Shape of a sample as it was given."""
        return self.mean.shape

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of a sample, as a net has it."""
        return len(self.mean), 1, 1

    def tensor(self, samples: Array) -> Tensor:
        """(n, 1, F) float32: one view of each."""
        return torch.from_numpy(((samples - self.mean) / self.scale).astype(np.float32))[:, None]

    def task(self, sets: Sets, classes: tuple[str, ...], nets: tuple[str, ...], policy: str) -> Classification:
        """Samples ready for training. There is no augmentation of features."""
        none = sets.labeled.take(torch.arange(0))
        return FeatureTask(
            classes, self.shape, Normalization((0.0,), (1.0,)), augment.views("none"),
            sets.labeled, sets.unlabeled, none, none, offsets=dict.fromkeys(nets, 0),
        )  # fmt: skip


@dataclass(frozen=True)
class Images:
    """Images (n, H, W) or (n, H, W, C).

    Bytes are taken as they are. Other numbers are spread over 256 levels, from the least to the largest seen.

    Attributes:
        size: shape of an image as it was given.
        low, high: what becomes 0 and 255.
        normalization: mean and deviation of each channel, over labeled and unlabeled samples.
    """

    size: tuple[int, ...]
    low: float
    high: float
    normalization: Normalization

    @classmethod
    def seen(cls, samples: Array) -> "Images":
        """As these samples are."""
        low, high = (0.0, 255.0) if samples.dtype == np.uint8 else (float(samples.min()), float(samples.max()))
        plain = cls(samples.shape[1:], low, high, Normalization((0.0,), (1.0,)))
        values = plain.tensor(samples).double() / 255.0
        mean, deviation = values.mean((0, 2, 3)), values.std((0, 2, 3), correction=0)
        normalization = Normalization(tuple(mean.tolist()), tuple(deviation.clamp_min(1 / 255.0).tolist()))
        return cls(plain.size, low, high, normalization)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of a sample, as a net has it."""
        return self.size[2] if len(self.size) > 2 else 1, self.size[0], self.size[1]

    def tensor(self, samples: Array) -> Tensor:
        """(n, C, H, W) uint8."""
        if samples.dtype != np.uint8 or (self.low, self.high) != (0.0, 255.0):
            span = self.high - self.low or 1.0
            samples = np.rint(np.clip((samples - self.low) / span, 0.0, 1.0) * 255.0).astype(np.uint8)
        planes = samples if samples.ndim > 3 else samples[..., None]
        return torch.from_numpy(np.ascontiguousarray(planes.transpose(0, 3, 1, 2)))

    def task(self, sets: Sets, classes: tuple[str, ...], nets: tuple[str, ...], policy: str) -> Classification:
        """Samples ready for training, augmented by a policy."""
        none = sets.labeled.take(torch.arange(0))
        return Classification(
            classes, self.shape, self.normalization, augment.views(policy), sets.labeled, sets.unlabeled, none, none
        )


def seen(samples: Array) -> Rows | Images:
    """How samples like these become tensors."""
    return Rows.seen(samples) if samples.ndim == 2 else Images.seen(samples)


def _ids(positions: Array) -> tuple[str, ...]:
    return tuple(map(str, positions.tolist()))
