"""Only labels teach: Baseline and Oracle."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from dmt.core import losses, mixing
from dmt.core.mixing import Mix
from dmt.objectives.base import Loss, Net, Objective, Progress
from dmt.types import Batch


@dataclass(frozen=True)
class Supervised(Objective):
    """Cross-entropy with the truth, with mixup if asked.

    Attributes:
        mixup: α of λ ~ Beta(α, α), as drawn (without the maximum that the rounds take); None for no mixup.
    """

    unlabeled: ClassVar[bool] = False

    mixup: float | None = None

    @property
    def passes(self) -> float:
        return 1.0

    def draw(self, progress: Progress, count: int, device: torch.device) -> Mix | None:
        if self.mixup is None:
            return None
        return mixing.draw(count, self.mixup, progress.stream("mixup"), dominant=False, device=device)

    def loss(self, nets: Sequence[Net], batch: Batch, draw: Mix | None) -> Loss:
        (net,) = nets
        if draw is None:
            sites = losses.per_site(net(batch.images), batch.truth)
        else:
            sites = losses.per_mixed_site(net(draw.blend(batch.images)), batch.truth, None, draw)
        total = sites.sum() / losses.labeled_sites(batch.truth).clamp_min(1.0)
        return Loss(total, {"labeled": total.detach()})
