"""Supervised training on labels only: Baseline and Oracle."""

from dataclasses import dataclass

import torch

from dmt.core import losses, mixing
from dmt.core.mixing import Mix
from dmt.objectives.base import Cast, Cost, Loss, Objective, Progress, detached
from dmt.options import neutral
from dmt.types import Batch, BatchShape


@dataclass(frozen=True)
class Supervised(Objective):
    """Cross-entropy with the truth, optionally with mixup.

    Attributes:
        mixup: α of λ ~ Beta(α, α), used as drawn, while rounds use max(λ, 1 − λ); None for no mixup.
        class_weights: weight of a site by its class, one per class; empty for equal weights. Not with mixup.
    """

    mixup: float | None = None
    class_weights: tuple[float, ...] = neutral(())

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.labeled)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> Mix | None:
        if self.mixup is None:
            return None
        return mixing.draw(shape.labeled, self.mixup, progress.stream("mixup"), dominant=False, device=device)

    def loss(self, cast: Cast, batch: Batch, draw: Mix | None) -> Loss:
        if draw is None:
            weights = losses.of_classes(batch.truth, self.class_weights) if self.class_weights else None
            sites = losses.per_site(cast.net(batch.images), batch.truth, weights)
        else:
            sites = losses.per_mixed_site(cast.net(draw.blend(batch.images)), batch.truth, None, draw)
        total = losses.mean_over_labeled(sites, batch.truth)
        return Loss(total, detached(labeled=total))
