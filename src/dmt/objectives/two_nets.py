"""Two nets for images that teach each other more than hard labels: Dual Student, Deep Co-Training.

In `peers`, nets exchange hard labels for the same view. Here, they exchange probabilities where one of them is more
stable, or must resist adversarial examples made against the other.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from dmt.core import losses, ramps, trees
from dmt.objectives.base import Cast, Cost, Loss, Objective, Progress, detached
from dmt.objectives.itself import WEAK2, supervised, sure
from dmt.objectives.peers import agreement
from dmt.types import WEAK, Batch, BatchShape


@dataclass(frozen=True)
class DualStudent(Objective):
    """Σ_i CE(f_i, y) + w·r·(mean s_i·|p_i(v_i) − p_j(v_j)|²/C + o·mean |p_i(v_i) − p_i(v_j)|²/C) (Ke et al. 2019).

    Net i is trained on view i, and also predicts the other view without gradient. An image is *stable* for a net that
    predicts the same class for both views, with a confidence above the threshold for at least one. s_i is 1 where the
    image is stable for the peer and either unstable for net i, or with a larger squared difference between the
    predictions of its two views than for the peer.

    Attributes:
        weight: w.
        own: o, weight of a net's consistency with itself, relative to that with the peer.
        threshold: a stable image needs a confidence above this.
        ramp: share of the stage over which r grows to 1, by exp(−5(1 − t)²).
    """

    lines: ClassVar[int] = 2
    views: ClassVar[tuple[str, ...]] = (WEAK, WEAK2)
    labeled_view: ClassVar[str] = WEAK

    weight: float = 100.0
    own: float = 0.2
    threshold: float = 0.8
    ramp: float = 0.0167

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(2 * shape.images, 2 * shape.unlabeled)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> Tensor:
        return trees.send(self.weight * ramps.exponential(progress.fraction, self.ramp), device)

    def loss(self, cast: Cast, batch: Batch, draw: Tensor) -> Loss:
        views = batch.views[WEAK], batch.views[WEAK2]
        count = len(views[0])
        found = [net(torch.cat([view, batch.images])) for net, view in zip(cast.nets, views, strict=True)]
        asked = [net.peek(view, update_statistics=True) for net, view in zip(cast.nets, views[::-1], strict=True)]
        labeled = supervised(found[0][count:], batch) + supervised(found[1][count:], batch)
        mine = [logits[:count].softmax(1) for logits in found]
        own = [losses.squared(p, other.softmax(1)) for p, other in zip(mine, asked, strict=True)]
        stable = [self._stable(logits[:count], other) for logits, other in zip(found, asked, strict=True)]
        learns = [
            stable[peer] & (~stable[net] | (own[net].detach() > own[peer].detach())) for net, peer in ((0, 1), (1, 0))
        ]
        taught = [losses.squared(mine[net], mine[peer]) * learns[net] for net, peer in ((0, 1), (1, 0))]
        unlabeled = (taught[0] + taught[1]).mean() + self.own * (own[0] + own[1]).mean()
        logged = detached(
            labeled=labeled,
            unlabeled=unlabeled,
            weight=draw,
            stable=(stable[0].float().mean() + stable[1].float().mean()) / 2,
            agree=agreement(*(logits[:count] for logits in found)),
        )
        return Loss(labeled + draw * unlabeled, logged)

    def _stable(self, logits: Tensor, other: Tensor) -> Tensor:
        (confidence, labels), (confidence2, labels2) = sure(logits), sure(other)
        return (labels == labels2) & (torch.maximum(confidence, confidence2) > self.threshold)


@dataclass(frozen=True)
class DeepCoTraining(Objective):
    """Σ_i CE(f_i, y) + r·(λ_c·mean JS(p₁(u), p₂(u)) + λ_d·Σ_i mean H(p_i(z_i), p_j(g_i(z_i)))) (Qiao et al. 2018).

    Each net has its own half of the labeled images. g_i makes an adversarial example against net i, a step of ε along
    the sign of the input gradient in eval mode; the other net must not be fooled by it. z_i are u and the labeled half
    of net i. Gradients reach both nets in both unlabeled terms, also through the predictions that serve as targets.

    Attributes:
        agree: λ_c, weight of the agreement on unlabeled images.
        differ: λ_d, weight of the robustness to adversarial examples against the other net.
        step: ε, for images in [0, 1].
        ramp: share of the stage over which r grows to 1, by exp(−5(1 − t)²).
    """

    lines: ClassVar[int] = 2
    views: ClassVar[tuple[str, ...]] = (WEAK,)
    labeled_view: ClassVar[str] = WEAK
    input_gradient: ClassVar[bool] = True

    agree: float = 10.0
    differ: float = 0.5
    step: float = 0.02
    ramp: float = 0.1333

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(3 * (2 * shape.unlabeled + shape.labeled))

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> Tensor:
        return trees.send(ramps.exponential(progress.fraction, self.ramp), device)

    def loss(self, cast: Cast, batch: Batch, draw: Tensor) -> Loss:
        unlabeled = batch.views[WEAK]
        count = len(unlabeled)
        truths = batch.truth[0::2], batch.truth[1::2]
        images = [torch.cat([unlabeled, batch.images[half::2]]) for half in (0, 1)]
        found = [net(each) for net, each in zip(cast.nets, images, strict=True)]
        labeled = sum(_supervised(each[count:], truth) for each, truth in zip(found, truths, strict=True))
        labels = [torch.cat([sure(each[:count])[1], truth]) for each, truth in zip(found, truths, strict=True)]
        fooling = [
            each + self.step * net.input_gradient(each, label).sign()
            for net, each, label in zip(cast.nets, images, labels, strict=True)
        ]
        judged = [net(each) for net, each in zip(cast.nets, fooling[::-1], strict=True)]
        agree = jensen_shannon(found[0][:count], found[1][:count]).mean()
        differ = cross(found[0], judged[1]).mean() + cross(found[1], judged[0]).mean()
        logged = detached(
            labeled=torch.as_tensor(labeled),
            unlabeled=agree,
            fooled=differ,
            weight=draw,
            agree=agreement(found[0][:count], found[1][:count]),
        )
        return Loss(labeled + draw * (self.agree * agree + self.differ * differ), logged)


def _supervised(logits: Tensor, truth: Tensor) -> Tensor:
    return losses.mean_over_labeled(losses.per_site(logits, truth), truth)


def cross(logits: Tensor, others: Tensor) -> Tensor:
    """Return H(p, q) = −Σ_c p_c·log q_c of two nets' logits at every site, with gradient to both."""
    return -(logits.softmax(1) * others.log_softmax(1)).sum(1)


def jensen_shannon(logits: Tensor, others: Tensor) -> Tensor:
    """Return H((p + q)/2) − (H(p) + H(q))/2 of two nets' logits at every site, with gradient to both."""
    first, second = logits.log_softmax(1), others.log_softmax(1)
    both = torch.logaddexp(first, second) - math.log(2.0)
    return (first.exp() * (first - both) + second.exp() * (second - both)).sum(1) / 2
