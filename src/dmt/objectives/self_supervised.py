"""Self-supervised pretraining on unlabeled images, without classes: rotation prediction, SimSiam.

Layers on top of the net's features are parts of the objective and are discarded afterwards; other stages continue
training the net.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmt.core import trees, turning
from dmt.objectives.base import Cast, Cost, Loss, Objective, Part, Progress, detached
from dmt.types import STRONG, WEAK, Batch, BatchShape

STRONG2 = "strong2"
LEAST = 32
"""Smallest width of the hidden layer of SimSiam's predictor."""


class SelfSupervised(Objective):
    """Base class of self-supervised objectives, whose nets are a start for other stages; labels are not used."""

    @property
    def embeds(self) -> bool:
        return True


@dataclass(frozen=True)
class Rotation(SelfSupervised):
    """CE(h(features of an image rotated by k quarter turns), k), k drawn for every image (Gidaris et al. 2018)."""

    views: ClassVar[tuple[str, ...]] = (WEAK,)
    labeled_view: ClassVar[str] = WEAK

    def parts(self, channels: int, classes: int) -> Mapping[str, Part]:
        return {"rotation": Part(nn.Linear(channels, turning.QUARTERS))}

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.unlabeled)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> Tensor:
        return trees.send(progress.stream("rotation").integers(0, turning.QUARTERS, shape.unlabeled), device)

    def loss(self, cast: Cast, batch: Batch, draw: Tensor) -> Loss:
        found = cast.parts["rotation"](cast.net.embed(turning.turned(batch.views[WEAK], draw)))
        total = F.cross_entropy(found, draw)
        return Loss(total, detached(unlabeled=total, right=(found.argmax(1) == draw).float().mean()))


@dataclass(frozen=True)
class SimSiam(SelfSupervised):
    """−½(cos(h(z₁), z₂) + cos(h(z₂), z₁)) of two strong views, where z = g(features) (Chen & He 2021).

    g is the projector, h the predictor; as a target, the second argument of cos, z is detached.

    Attributes:
        width: width of the projection z.
    """

    views: ClassVar[tuple[str, ...]] = (STRONG, STRONG2)
    labeled_view: ClassVar[str] = STRONG

    width: int = 128

    def parts(self, channels: int, classes: int) -> Mapping[str, Part]:
        project = nn.Sequential(
            nn.Linear(channels, self.width, bias=False),
            nn.BatchNorm1d(self.width),
            nn.ReLU(),
            nn.Linear(self.width, self.width, bias=False),
            nn.BatchNorm1d(self.width, affine=False),
        )
        narrow = max(LEAST, self.width // 4)
        predict = nn.Sequential(
            nn.Linear(self.width, narrow, bias=False),
            nn.BatchNorm1d(narrow),
            nn.ReLU(),
            nn.Linear(narrow, self.width),
        )
        return {"project": Part(project), "predict": Part(predict)}

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(2 * shape.unlabeled)

    def loss(self, cast: Cast, batch: Batch, draw: None) -> Loss:
        project, predict = cast.parts["project"], cast.parts["predict"]
        first, second = (project(cast.net.embed(batch.views[view])) for view in self.views)
        alike = (_cosine(predict(first), second) + _cosine(predict(second), first)) / 2
        spread = F.normalize(first.detach(), dim=1).std(0).mean() * self.width**0.5  # 0 if projections have collapsed
        return Loss(-alike, detached(unlabeled=-alike, spread=spread))


def _cosine(values: Tensor, targets: Tensor) -> Tensor:
    return F.cosine_similarity(values, targets.detach(), dim=1).mean()
