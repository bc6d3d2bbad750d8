"""s4GAN with its second branch MLMT: beside the segmenter, an image classifier learns from labels and its EMA copy."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from dmt.core import losses, trees
from dmt.objectives.base import Cast, Cost, Loss, Objective, Part, Progress, detached
from dmt.objectives.judged import S4GAN, JudgedDraw, one_hot
from dmt.types import IGNORE, STRONG, WEAK, Batch, BatchShape

SLOPE = 2.0
"""Slope of the ramp of the unlabeled term's weight: it grows from 0 to 1 over half of a stage."""


class MultiLabelDraw(NamedTuple):
    """Random draws and schedule values of one `S4GANMultiLabel` step."""

    judge: JudgedDraw
    ramp: Tensor  # 0-d, from 0 to 1


@dataclass(frozen=True)
class S4GANMultiLabel(Objective):
    """s4GAN + BCE(c(x), classes of y) + w·r·(1 − cos(c(strong u), c'(weak u))) (Mittal et al. 2019, MLMT).

    c are the multi-label logits of an image classifier, and c' those of its EMA copy. Outside of training, the
    classifier switches off classes whose probability is below a threshold. In training, it and the segmenter do not
    influence each other.

    Attributes:
        s4gan: objective of the segmenter.
        consistency: w.
        start: share of the stage before the classifier learns from its EMA copy; r = min(1, 2(t/T − start)).
        present: classes with a lower probability by the classifier are switched off.
    """

    views: ClassVar[tuple[str, ...]] = (WEAK, STRONG)
    labeled_view: ClassVar[str] = WEAK
    slow: ClassVar[bool] = True

    s4gan: S4GAN = S4GAN()
    consistency: float = 1.0
    start: float = 0.1
    present: float = 0.2

    @property
    def class_threshold(self) -> float:
        return self.present

    def parts(self, channels: int, classes: int) -> Mapping[str, Part]:
        return self.s4gan.parts(channels, classes)

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(self.s4gan.cost(shape).learned + shape.images, shape.unlabeled)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> MultiLabelDraw:
        ramp = min(1.0, max(0.0, SLOPE * (progress.fraction - self.start)))
        return MultiLabelDraw(self.s4gan.draw(progress, shape, device), trees.send(ramp, device))

    def loss(self, cast: Cast, batch: Batch, draw: MultiLabelDraw) -> Loss:
        segmented = self.s4gan.loss(cast, batch, draw.judge)
        learner, slow = cast.tellers
        count = len(batch.views[STRONG])
        logits = learner.presence(torch.cat([batch.views[STRONG], batch.images]))
        named = class_loss(logits[count:], batch.truth)
        apart = (1.0 - F.cosine_similarity(logits[:count], slow.presence(batch.views[WEAK]).detach())).mean()
        logged = detached(classes=named, classes_apart=apart, weight=self.consistency * draw.ramp)
        total = segmented.total + named + self.consistency * draw.ramp * apart
        return Loss(total, {**segmented.logged, **logged})


def class_loss(logits: Tensor, truth: Tensor) -> Tensor:
    """Return the binary cross-entropy of logits (N, C) with the classes that occur in labels (N, H, W), 0-d.

    The mean is over all classes of the images with at least one labeled pixel.
    """
    shown = one_hot(truth, logits[:, :, None, None]).amax((2, 3))
    told = (truth != IGNORE).flatten(1).any(1)[:, None].expand(logits.shape)
    return losses.mean_over(F.binary_cross_entropy_with_logits(logits, shown, reduction="none"), told)
