"""Conversion of arrays to inputs of nets: rows of features are standardized, images become uint8."""

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
    """Labeled and unlabeled samples to learn from."""

    labeled: LabeledSet[Tensor]
    unlabeled: UnlabeledSet[Tensor]

    @classmethod
    def of(cls, samples: Tensor, labeled: Array, codes: Array, unlabeled: Array) -> "Sets":
        """Split samples by position.

        Args:
            samples: all samples.
            labeled: positions of the labeled samples.
            codes: class indices of the labeled samples.
            unlabeled: positions of the unlabeled samples.
        """
        known, pool = torch.from_numpy(labeled), torch.from_numpy(unlabeled)
        truth = torch.from_numpy(codes)
        return cls(LabeledSet(_ids(labeled), samples[known], truth), UnlabeledSet(_ids(unlabeled), samples[pool]))


@dataclass(frozen=True)
class Rows:
    """Conversion of rows of features, (n, F), which are standardized.

    Attributes:
        mean, scale: mean and standard deviation of each feature over labeled and unlabeled samples, each (F,).
    """

    mean: Array
    scale: Array

    @classmethod
    def seen(cls, samples: Array) -> "Rows":
        """Return the conversion with mean and standard deviation of these samples."""
        values = samples.astype(np.float64)
        scale = values.std(0)
        # a feature whose variation is within rounding errors counts as constant
        constant = scale <= 10 * np.finfo(np.float64).eps * np.abs(values).max(0, initial=0.0)
        return cls(values.mean(0), np.where(constant, 1.0, scale))

    @property
    def size(self) -> tuple[int, ...]:
        """Shape of a sample in the given array."""
        return self.mean.shape

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of a sample as input of a net."""
        return len(self.mean), 1, 1

    def tensor(self, samples: Array) -> Tensor:
        """Return standardized samples as (n, 1, F) float32: one view of each."""
        return torch.from_numpy(((samples - self.mean) / self.scale).astype(np.float32))[:, None]

    def task(self, sets: Sets, classes: tuple[str, ...], nets: tuple[str, ...], policy: str) -> Classification:
        """Return the task of these samples. Features are not augmented; the policy is ignored."""
        none = sets.labeled.take(torch.arange(0))
        return FeatureTask(
            classes, self.shape, Normalization((0.0,), (1.0,)), augment.views("none"),
            sets.labeled, sets.unlabeled, none, none, offsets=dict.fromkeys(nets, 0),
        )  # fmt: skip


@dataclass(frozen=True)
class Images:
    """Conversion of images, (n, H, W) or (n, H, W, C).

    Images of dtype uint8 are used as they are. Others are scaled to 256 levels, from their smallest to their largest
    value.

    Attributes:
        size: shape of an image in the given array.
        low, high: values that become 0 and 255.
        normalization: mean and standard deviation of each channel over labeled and unlabeled samples.
    """

    size: tuple[int, ...]
    low: float
    high: float
    normalization: Normalization

    @classmethod
    def seen(cls, samples: Array) -> "Images":
        """Return the conversion with range, mean and standard deviation of these samples."""
        low, high = (0.0, 255.0) if samples.dtype == np.uint8 else (float(samples.min()), float(samples.max()))
        plain = cls(samples.shape[1:], low, high, Normalization((0.0,), (1.0,)))
        values = plain.tensor(samples).double() / 255.0
        mean, deviation = values.mean((0, 2, 3)), values.std((0, 2, 3), correction=0)
        normalization = Normalization(tuple(mean.tolist()), tuple(deviation.clamp_min(1 / 255.0).tolist()))
        return cls(plain.size, low, high, normalization)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of a sample as input of a net."""
        return self.size[2] if len(self.size) > 2 else 1, self.size[0], self.size[1]

    def tensor(self, samples: Array) -> Tensor:
        """Return samples as (n, C, H, W) uint8."""
        if samples.dtype != np.uint8 or (self.low, self.high) != (0.0, 255.0):
            span = self.high - self.low or 1.0
            samples = np.rint(np.clip((samples - self.low) / span, 0.0, 1.0) * 255.0).astype(np.uint8)
        planes = samples if samples.ndim > 3 else samples[..., None]
        return torch.from_numpy(np.ascontiguousarray(planes.transpose(0, 3, 1, 2)))

    def task(self, sets: Sets, classes: tuple[str, ...], nets: tuple[str, ...], policy: str) -> Classification:
        """Return the task of these samples, augmented by a policy."""
        none = sets.labeled.take(torch.arange(0))
        return Classification(
            classes, self.shape, self.normalization, augment.views(policy), sets.labeled, sets.unlabeled, none, none
        )


def seen(samples: Array) -> Rows | Images:
    """Return the conversion of such samples: rows of features if they have two dimensions, or else images."""
    return Rows.seen(samples) if samples.ndim == 2 else Images.seen(samples)


def _ids(positions: Array) -> tuple[str, ...]:
    return tuple(map(str, positions.tolist()))
