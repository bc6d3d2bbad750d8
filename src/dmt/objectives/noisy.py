"""Training with noisy labels: each of two nets selects labels for the other. Co-Teaching, Co-Teaching+."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from dmt.core import losses, ramps, trees
from dmt.objectives.base import Cast, Cost, Loss, Objective, Progress, detached
from dmt.objectives.peers import agreement
from dmt.types import IGNORE, Batch, BatchShape


class Choice(NamedTuple):
    """Schedule values of one step: the share of labels to train on, and whether agreed ones may be among them."""

    share: Tensor  # 0-d, in [0, 1]
    agreed: Tensor  # 0-d bool, whether images on which the nets agree are candidates


@dataclass(frozen=True)
class CoTeaching(Objective):
    """Each net is trained on the labels of a batch that have the smallest loss in its peer (Han et al. 2018).

    The share of labels that is used falls from 1 to 1 − noise.

    Attributes:
        noise: estimated share of wrong labels.
        ramp: share of the stage over which the share of used labels falls.
    """

    lines: ClassVar[int] = 2

    noise: float = 0.2
    ramp: float = 0.05

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(2 * shape.labeled)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> Choice:
        share = 1.0 - self.noise * ramps.linear(progress.fraction, self.ramp)
        return Choice(trees.send(share, device), trees.send(self._agreed(progress), device) > 0)

    def _agreed(self, progress: Progress) -> float:
        return 1.0

    def loss(self, cast: Cast, batch: Batch, draw: Choice) -> Loss:
        first, second = (net(batch.images) for net in cast.nets)
        sites = [losses.per_site(each, batch.truth) for each in (first, second)]
        candidates = (batch.truth != IGNORE) & (draw.agreed | (first.argmax(1) != second.argmax(1)))
        easy = [easiest(each, candidates, draw.share) for each in sites]
        learned = [(sites[net] * easy[peer]).sum() / easy[peer].sum().clamp_min(1) for net, peer in ((0, 1), (1, 0))]
        total = learned[0] + learned[1]
        logged = detached(
            labeled=total, kept=(easy[0] | easy[1]).float().mean(), share=draw.share, agree=agreement(first, second)
        )
        return Loss(total, logged)


@dataclass(frozen=True)
class CoTeachingPlus(CoTeaching):
    """Co-Teaching that later uses only images on which the nets' predictions differ (Yu et al. 2019).

    Attributes:
        start: share of the stage after which images on which the nets agree are ignored.
    """

    start: float = 0.1

    def _agreed(self, progress: Progress) -> float:
        return float(progress.fraction < self.start)


@torch.no_grad()
def easiest(sites: Tensor, candidates: Tensor, share: Tensor) -> Tensor:
    """Return a mask (N,) of the ⌊share·n + ½⌋ of n candidates with the smallest loss; of ties, the earlier ones."""
    ranked = torch.where(candidates, sites.detach(), torch.inf).argsort(stable=True).argsort()
    return candidates & (ranked < (share * candidates.sum() + 0.5).floor())
