"""MixMatch and ReMixMatch: guess soft labels, then apply mixup across labeled and unlabeled images.

Guesses come from a train-mode forward without gradient that does not update running statistics. Labeled and unlabeled
images are mixed with each other, each with its own λ, and pass through the net together. So BatchNorm's statistics are
of both, as in the published code, which interleaves them among its batches.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from dmt.core import losses, mixing, ramps, targets, trees, turning
from dmt.core.mixing import SampleMix
from dmt.objectives.base import Cast, Cost, Loss, Objective, Part, Progress, detached
from dmt.objectives.itself import WEAK2
from dmt.types import STRONG, WEAK, Batch, BatchShape, Sizes

RECENT = 128
"""Number of recent steps over which ReMixMatch averages its predicted class distribution."""

TRUTH_EMA = 0.999
"""Decay of ReMixMatch's moving average of the class distribution of the labels."""

ROTATION = "rotation"


class MixDraw(NamedTuple):
    """Random draws and schedule values of one `MixMatch` step."""

    ramp: Tensor  # 0-d, from 0 to 1
    mix: SampleMix | None  # for [labeled; views of unlabeled images, one view after the other]


@dataclass(frozen=True)
class MixMatch(Objective):
    """soft CE(x̃, ỹ) + w·r·mean |p(ũ) − q̃|²/C; q = sharpen(mean of p over two weak views) (Berthelot et al. 2019).

    x̃ and ũ are [x; weak; weak2] after each has been mixed with a partner from all of them; their labels [y; q; q] are
    mixed in the same way.

    Attributes:
        temperature: temperature of the sharpening.
        mixup: α of λ ~ Beta(α, α), replaced by max(λ, 1 − λ), for every sample; None for no mixup.
        weight: w.
        ramp: share of the stage over which r grows from 0 to 1.
    """

    views: ClassVar[tuple[str, ...]] = (WEAK, WEAK2)
    labeled_view: ClassVar[str] = WEAK

    temperature: float = 0.5
    mixup: float | None = 0.75
    weight: float = 75.0
    ramp: float = 1 / 64

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.labeled + 2 * shape.unlabeled, 2 * shape.unlabeled)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> MixDraw:
        ramp = trees.send(ramps.linear(progress.fraction, self.ramp), device)
        return MixDraw(ramp, _mix(self.mixup, shape.labeled + 2 * shape.unlabeled, progress, device))

    def loss(self, cast: Cast, batch: Batch, draw: MixDraw) -> Loss:
        views = [batch.views[name] for name in self.views]
        first, second = cast.net.peek(torch.cat(views)).softmax(1).chunk(2)
        guess = targets.sharpened((first + second) / 2, self.temperature)
        logits, soft = _mixed(cast, batch, views, guess, draw.mix)
        count = len(batch.images)
        labeled = losses.soft_cross_entropy(logits[:count], soft[:count]).mean()
        unlabeled = losses.squared(logits[count:].softmax(1), soft[count:]).mean()
        weight = self.weight * draw.ramp
        logged = detached(labeled=labeled, unlabeled=unlabeled, weight=weight, confidence=guess.max(1).values.mean())
        return Loss(labeled + weight * unlabeled, logged)


class TurnDraw(NamedTuple):
    """Random draws and schedule values of one `ReMixMatch` step."""

    ramp: Tensor  # 0-d, from 0 to 1
    mix: SampleMix | None  # as in `MixDraw`
    quarters: Tensor | None  # (U,) int64, quarter turns of the strong views; None without the rotation term


@dataclass(frozen=True)
class ReMixMatch(Objective):
    """MixMatch with distribution alignment, strong views and rotation prediction (Berthelot et al. 2020).

    soft CE(x̃, ỹ) + w·r·mean soft CE(ũ, q̃) + v·r·mean soft CE(strong, q) + s·mean CE(rotated strong, quarters).

    q = sharpen(align(p(weak))) is the target of the weak view and of all strong views. The memory holds the class
    distribution of predictions (mean probabilities of the last `RECENT` steps) and that of labels (a moving average),
    both starting at 1/C; it is updated after it is used. Rotations are predicted by a linear layer on the input of the
    net's last layer. Where the net reads stored features of a frozen encoder, nothing can be rotated, and this term is
    left out.

    Attributes:
        temperature: temperature of the sharpening.
        mixup: as in `MixMatch`.
        strong_views: number of strong views of each unlabeled image that are mixed.
        weight: w.
        weight_strong: v, weight of an unmixed strong view.
        weight_rotation: s.
        ramp: share of the stage over which r grows from 0 to 1.
    """

    labeled_view: ClassVar[str] = WEAK

    temperature: float = 0.5
    mixup: float | None = 0.75
    strong_views: int = 8
    weight: float = 1.5
    weight_strong: float = 0.5
    weight_rotation: float = 0.5
    ramp: float = 1 / 64

    @property
    def views(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the views: a weak one, and `strong_views` strong ones."""
        return (WEAK, STRONG, *(f"{STRONG}{number}" for number in range(2, self.strong_views + 1)))

    @property
    def embeds(self) -> bool:
        return self.weight_rotation > 0

    def memory(self, sizes: Sizes, classes: int) -> Mapping[str, Tensor]:
        even = torch.full((classes,), 1.0 / classes)
        return {"given": even.repeat(RECENT, 1), "truth": even}

    def parts(self, channels: int, classes: int) -> Mapping[str, Part]:
        return {ROTATION: Part(nn.Linear(channels, turning.QUARTERS))} if self.embeds else {}

    def cost(self, shape: BatchShape) -> Cost:
        plain = (self.weight_strong > 0) + (self.weight_rotation > 0)
        return Cost(shape.labeled + (len(self.views) + plain) * shape.unlabeled, shape.unlabeled)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> TurnDraw:
        ramp = trees.send(ramps.linear(progress.fraction, self.ramp), device)
        mix = _mix(self.mixup, shape.labeled + len(self.views) * shape.unlabeled, progress, device)
        quarters = progress.stream("quarters").integers(0, turning.QUARTERS, shape.unlabeled)
        return TurnDraw(ramp, mix, trees.send(quarters, device) if self.embeds else None)

    def loss(self, cast: Cast, batch: Batch, draw: TurnDraw) -> Loss:
        views = [batch.views[name] for name in self.views]
        found = cast.net.peek(views[0]).softmax(1)
        aligned = targets.aligned(found, cast.memory["truth"], cast.memory["given"].mean(0))
        guess = targets.sharpened(aligned, self.temperature)
        logits, soft = _mixed(cast, batch, views, guess, draw.mix)
        count = len(batch.images)
        labeled = losses.soft_cross_entropy(logits[:count], soft[:count]).mean()
        unlabeled = losses.soft_cross_entropy(logits[count:], soft[count:]).mean()
        terms = {"labeled": labeled, "unlabeled": unlabeled}
        total = labeled + self.weight * draw.ramp * unlabeled
        if self.weight_strong > 0:
            plain = cast.net(batch.views[STRONG], update_statistics=False)
            terms["strong"] = losses.soft_cross_entropy(plain, guess).mean()
            total = total + self.weight_strong * draw.ramp * terms["strong"]
        if draw.quarters is not None and views[1].dim() == 4:
            seen = cast.net.embed(turning.turned(batch.views[STRONG], draw.quarters), update_statistics=False)
            terms[ROTATION] = losses.per_site(cast.parts[ROTATION](seen), draw.quarters).mean()
            total = total + self.weight_rotation * terms[ROTATION]
        given = torch.cat([cast.memory["given"][1:], found.mean(0, keepdim=True)])
        truth = cast.memory["truth"].lerp(targets.one_hot(batch.truth, found.shape[1]).mean(0), 1.0 - TRUTH_EMA)
        logged = detached(**terms, ramp=draw.ramp, confidence=guess.max(1).values.mean())
        return Loss(total, logged, {"given": given, "truth": truth})


def _mix(alpha: float | None, count: int, progress: Progress, device: torch.device) -> SampleMix | None:
    return None if alpha is None else mixing.draw_each(count, alpha, progress.stream("mixup"), device)


def _mixed(
    cast: Cast, batch: Batch, views: list[Tensor], guess: Tensor, mix: SampleMix | None
) -> tuple[Tensor, Tensor]:
    """Return the logits and soft labels of [labeled; views of unlabeled images], after mixup across all of them."""
    images = torch.cat([batch.images, *views])
    soft = torch.cat([targets.one_hot(batch.truth, guess.shape[1]), *[guess] * len(views)])
    if mix is None:
        return cast.net(images), soft
    return cast.net(mix.blend(images)), mix.blend(soft)
