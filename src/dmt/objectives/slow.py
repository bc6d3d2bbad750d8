"""The net's EMA copy is the teacher: Mean Teacher, MT-Seg, CutMix-Seg.

The EMA copy also averages BatchNorm's running statistics, so it predicts in eval mode. The labeled and the unlabeled
term are separate means.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from dmt.core import losses, pasting, ramps, trees
from dmt.core.pasting import Boxes, Paste
from dmt.objectives.base import Cast, Cost, Loss, Objective, Progress, detached
from dmt.objectives.itself import WEAK2, consistency, supervised, sure
from dmt.types import WEAK, Batch, BatchShape


@dataclass(frozen=True)
class MeanTeacher(Objective):
    """CE(x, y) + w·r·mean |p_f(v₁) − p_f'(v₂)|²/C over two weak views, f' the EMA copy (Tarvainen & Valpola 2017).

    Running statistics come from labeled images alone, as in the implementation of the published numbers.

    Attributes:
        weight: w.
        ramp: share of the stage over which r grows from 0 to 1.
    """

    views: ClassVar[tuple[str, ...]] = (WEAK, WEAK2)
    labeled_view: ClassVar[str] = WEAK
    slow: ClassVar[bool] = True

    weight: float = 50.0
    ramp: float = 0.4

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.images, shape.unlabeled)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> Tensor:
        return trees.send(self.weight * ramps.linear(progress.fraction, self.ramp), device)

    def loss(self, cast: Cast, batch: Batch, draw: Tensor) -> Loss:
        return consistency(cast, batch, cast.teacher, draw)


@dataclass(frozen=True)
class MeanTeacherSeg(Objective):
    """CE(x, y) + w·r·mean |z_f(u) − z_f'(u)|²/C: logits of net and EMA copy for the same view (PixelSSL's SSL-MT).

    Attributes:
        weight: w.
        ramp: share of the stage over which r grows to 1, by exp(−5(1 − t)²).
    """

    views: ClassVar[tuple[str, ...]] = (WEAK,)
    labeled_view: ClassVar[str] = WEAK
    slow: ClassVar[bool] = True

    weight: float = 1.0
    ramp: float = 0.15

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.images, shape.unlabeled)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> Tensor:
        return trees.send(self.weight * ramps.exponential(progress.fraction, self.ramp), device)

    def loss(self, cast: Cast, batch: Batch, draw: Tensor) -> Loss:
        count = len(batch.views[WEAK])
        logits = cast.net(torch.cat([batch.views[WEAK], batch.images]))
        labeled = supervised(logits[count:], batch)
        target = cast.teacher(batch.views[WEAK])
        unlabeled = losses.mean_over(losses.squared(logits[:count], target), batch.valid)
        return Loss(labeled + draw * unlabeled, detached(labeled=labeled, unlabeled=unlabeled, weight=draw))


@dataclass(frozen=True)
class CutMixSeg(Objective):
    """CE(x, y) + w·s·mean Σ_c (p_f(pasted) − q_f' pasted)², s the share of confident pixels (French et al. 2020).

    A box of another image is pasted into each image; the targets are the EMA copy's probabilities, pasted in the same
    way. s is one number for the whole batch: the share of pixels at which the pasted target's confidence reaches the
    threshold. Both are means over all pixels; padding adds 0 to the squares.

    Attributes:
        threshold: threshold of the EMA copy's confidence.
        weight: w.
        area: share of the image that a box covers.
    """

    views: ClassVar[tuple[str, ...]] = (WEAK,)
    labeled_view: ClassVar[str] = WEAK
    slow: ClassVar[bool] = True
    revision: ClassVar[int] = 1

    threshold: float = 0.97
    weight: float = 1.0
    area: float = 0.5

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.images, shape.unlabeled)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> Paste:
        rng, size = progress.stream("paste"), (shape.height, shape.width)
        return pasting.draw_box(shape.unlabeled, size, Boxes((self.area, self.area)), rng, device)

    def loss(self, cast: Cast, batch: Batch, draw: Paste) -> Loss:
        images = batch.views[WEAK]
        labeled = supervised(cast.net(batch.images), batch)
        guess = cast.teacher(images)
        share = (draw.apply(sure(guess)[0]) >= self.threshold).float().mean()
        found = cast.net(draw.apply(images)).softmax(1)
        squares = losses.squared(found, draw.apply(guess.softmax(1)), summed=True)
        unlabeled = (squares if batch.valid is None else squares * draw.apply(batch.valid)).mean()
        logged = detached(labeled=labeled, unlabeled=unlabeled, kept=share)
        return Loss(labeled + self.weight * share * unlabeled, logged)
