"""Temporal ensembling, the Π-model with stored targets: the net learns its average prediction of earlier epochs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from dmt.core import losses, ramps, recall, trees
from dmt.objectives.base import Cast, Cost, Loss, Objective, Progress, detached
from dmt.objectives.itself import supervised
from dmt.types import WEAK, Batch, BatchShape, Sizes


@dataclass(frozen=True)
class TemporalEnsembling(Objective):
    """CE(x, y) + w·r·mean |p(u) − z(u)|²/C, z the moving average of earlier p(u) (Laine & Aila 2017).

    Z ← αZ + (1 − α)p at every visit of an image, and z = Z/(1 − αⁿ) after n visits. One view and one forward replace
    the Π-model's two. At its first visit, an image has no target and adds 0 to the mean.

    Attributes:
        weight: w.
        ramp: share of the stage over which r grows to 1, by exp(−5(1 − t)²).
        decay: α.
    """

    views: ClassVar[tuple[str, ...]] = (WEAK,)
    labeled_view: ClassVar[str] = WEAK

    weight: float = 30.0
    ramp: float = 0.27
    decay: float = 0.6

    def memory(self, sizes: Sizes, classes: int) -> Mapping[str, Tensor]:
        return {"sums": torch.zeros(sizes.unlabeled, classes), "visits": torch.zeros(sizes.unlabeled)}

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.images)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> Tensor:
        return trees.send(self.weight * ramps.exponential(progress.fraction, self.ramp), device)

    def loss(self, cast: Cast, batch: Batch, draw: Tensor) -> Loss:
        assert batch.positions is not None
        count, places = len(batch.views[WEAK]), batch.positions
        logits = cast.net(torch.cat([batch.views[WEAK], batch.images]))
        labeled = supervised(logits[count:], batch)
        found = logits[:count].softmax(1)
        sums, visits = cast.memory["sums"][places], cast.memory["visits"][places]
        known = visits > 0
        target = sums / torch.where(known, 1.0 - self.decay**visits, 1.0)[:, None]
        unlabeled = (losses.squared(found, target) * known).mean()
        last = recall.last_of(places)
        fresh = {"sums": torch.lerp(found.detach(), sums, self.decay)[last], "visits": visits + 1}
        memory = {name: values.index_copy(0, places, fresh[name]) for name, values in cast.memory.items()}
        logged = detached(labeled=labeled, unlabeled=unlabeled, weight=draw, kept=known.float().mean())
        return Loss(labeled + draw * unlabeled, logged, memory)
