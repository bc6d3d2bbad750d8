"""Adversarial methods: a discriminator, trained to tell predictions from ground truth, supervises the net.

AdvSemiSeg and s4GAN. One backward pass is enough for both losses: the discriminator's parameters are detached in the
net's loss, and predictions are detached in the discriminator's loss.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from dmt.core import losses, noise, trees
from dmt.core.schedule import Descent
from dmt.objectives import judges
from dmt.objectives.base import Cast, Cost, Loss, Objective, Part, Progress, detached
from dmt.objectives.itself import supervised, sure
from dmt.objectives.judges import ImageJudge, PixelJudge
from dmt.types import IGNORE, WEAK, Batch, BatchShape

JUDGE = "judge"


@dataclass(frozen=True)
class AdvSemiSeg(Objective):
    """CE(x, y) + a·BCE(D(p(x)), real) + b·BCE(D(p(u)), real) + s·CE(u, argmax p(u)) where D ≥ τ (Hung et al. 2018).

    The discriminator D scores every pixel of a map of probabilities. Its loss is ½BCE(D(p), fake) +
    ½BCE(D(onehot y), real), with p of labeled and unlabeled images in equal parts. The last term of the net's loss is a
    mean over the pixels that are kept, as published, and starts only after a share of the stage.

    Attributes:
        threshold: τ.
        semi: s.
        adversarial: a.
        adversarial_unlabeled: b.
        start: share of the stage after which the net is also trained on its own labels.
        judge_rate: learning rate of the discriminator (Adam).
        judge_width: channels of the discriminator's first layer.
    """

    views: ClassVar[tuple[str, ...]] = (WEAK,)
    labeled_view: ClassVar[str] = WEAK

    threshold: float = 0.2
    semi: float = 0.1
    adversarial: float = 0.01
    adversarial_unlabeled: float = 0.001
    start: float = 0.25
    judge_rate: float = 1e-4
    judge_width: int = 64

    def parts(self, channels: int, classes: int) -> Mapping[str, Part]:
        return {JUDGE: Part(PixelJudge(classes, self.judge_width), judge_descent(self.judge_rate))}

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.images)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> Tensor:
        return trees.send(float(progress.fraction >= self.start), device)

    def loss(self, cast: Cast, batch: Batch, draw: Tensor) -> Loss:
        count, judge = len(batch.views[WEAK]), cast.parts[JUDGE]
        logits = cast.net(torch.cat([batch.views[WEAK], batch.images]))
        labeled = supervised(logits[count:], batch)
        probabilities = logits.softmax(1)
        told = batch.truth != IGNORE
        valid = torch.ones_like(logits[:count, 0], dtype=torch.bool) if batch.valid is None else batch.valid
        scores = judges.frozen(judge, probabilities)
        fooled = losses.mean_over(bce(scores[count:], 1.0), told)
        fooled_unlabeled = losses.mean_over(bce(scores[:count], 1.0), valid)
        kept = (scores[:count].detach().sigmoid() >= self.threshold) & valid
        own = losses.mean_over(losses.per_site(logits[:count], sure(logits[:count])[1]), kept)
        suspected = bce(judge(probabilities.detach()), 0.0)
        fake = (losses.mean_over(suspected[:count], valid) + losses.mean_over(suspected[count:], told)) / 2
        real = losses.mean_over(bce(judge(one_hot(batch.truth, logits)), 1.0), told)
        judged = (fake + real) / 2
        total = labeled + self.adversarial * fooled + self.adversarial_unlabeled * fooled_unlabeled
        share = losses.mean_over(kept.float(), valid)
        logged = detached(labeled=labeled, unlabeled=own, judge=judged, fooled=fooled_unlabeled, kept=share)
        return Loss(total + draw * self.semi * own + judged, logged)


class JudgedDraw(NamedTuple):
    """Seeds of dropout in the discriminator while it is trained."""

    predicted: Tensor  # (U, 3) int64, for predictions
    given: Tensor  # (L, 3) int64, for ground truth


@dataclass(frozen=True)
class S4GAN(Objective):
    """CE(x, y) + m·|E D_f(y) − E D_f(p(u))|₁ + s·CE(u, argmax p(u)) on images with D > τ (Mittal et al. 2019).

    The discriminator D gives [probabilities; image] one score per image; D_f are its pooled features. Its loss is
    ½(BCE fake + BCE real), with dropout. In the net's loss it runs without dropout, so that chance does not decide
    which images are kept. The last term is a mean over the images that are kept, as published.

    Attributes:
        threshold: τ.
        semi: s.
        matching: m.
        judge_rate: learning rate of the discriminator (Adam).
        judge_width: channels of the discriminator's first layer.
    """

    views: ClassVar[tuple[str, ...]] = (WEAK,)
    labeled_view: ClassVar[str] = WEAK

    threshold: float = 0.6
    semi: float = 1.0
    matching: float = 0.1
    judge_rate: float = 1e-4
    judge_width: int = 64

    def parts(self, channels: int, classes: int) -> Mapping[str, Part]:
        return {JUDGE: Part(ImageJudge(channels + classes, self.judge_width), judge_descent(self.judge_rate))}

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.images)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> JudgedDraw:
        rng = progress.stream("judge")
        return JudgedDraw(noise.draw((shape.unlabeled, 3), rng, device), noise.draw((shape.labeled, 3), rng, device))

    def loss(self, cast: Cast, batch: Batch, draw: JudgedDraw) -> Loss:
        images, judge = batch.views[WEAK], cast.parts[JUDGE]
        logits = cast.net(torch.cat([images, batch.images]))
        ours = logits[: len(images)]
        labeled = supervised(logits[len(images) :], batch)
        predicted = torch.cat([ours.softmax(1), images], 1)
        given = torch.cat([one_hot(batch.truth, logits), batch.images], 1)
        score, features = judges.frozen(judge, predicted)
        wanted = judges.frozen(judge, given)[1]
        apart = (wanted.mean(0) - features.mean(0)).abs().mean()
        kept = (score.detach().sigmoid() > self.threshold)[:, None, None].expand(ours[:, 0].shape)
        valid = kept if batch.valid is None else kept & batch.valid
        own = losses.mean_over(losses.per_site(ours, sure(ours)[1]), valid)
        fake, real = bce(judge(predicted.detach(), draw.predicted)[0], 0.0), bce(judge(given, draw.given)[0], 1.0)
        judged = (fake.mean() + real.mean()) / 2
        logged = detached(labeled=labeled, unlabeled=own, judge=judged, apart=apart, kept=kept.float().mean())
        return Loss(labeled + self.matching * apart + self.semi * own + judged, logged)


def judge_descent(rate: float) -> Descent:
    """Return the optimizer of discriminators: Adam without weight decay."""
    return Descent(rate, "adam", weight_decay=0.0)


def bce(scores: Tensor, wanted: float) -> Tensor:
    """Return the binary cross-entropy of every score (a logit) with the same target, unreduced."""
    return F.binary_cross_entropy_with_logits(scores, torch.full_like(scores, wanted), reduction="none")


def one_hot(truth: Tensor, logits: Tensor) -> Tensor:
    """Return labels (N, H, W) as one-hot maps (N, C, H, W) in the type of the logits; all 0 where there is no label."""
    classes = torch.arange(logits.shape[1], device=truth.device)
    return (truth[:, None] == classes[None, :, None, None]).to(logits.dtype)
