"""Guess soft labels, then mix everything with everything: MixMatch, ReMixMatch.

Guesses come from a look in train mode that leaves no trace. Labeled and unlabeled images are mixed with one another,
each by a λ of its own, and go through the net together: so BatchNorm's statistics are of both, as in the published
code, which deals them out to batches in turn.
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
"""So many steps ReMixMatch looks back for the classes that it gives."""

TRUTH_EMA = 0.999
"""Decay of the average by which ReMixMatch knows the classes that are true."""

ROTATION = "rotation"


class MixDraw(NamedTuple):
    """What a step of `MixMatch` takes."""

    ramp: Tensor  # 0-d
    mix: SampleMix | None  # of [labeled; views of unlabeled images, one after the other]


@dataclass(frozen=True)
class MixMatch(Objective):
    """soft CE(x̃, ỹ) + w·r·mean |p(ũ) − q̃|²/C; q = sharpen(mean of p over two weak views) (Berthelot et al. 2019).

    x̃ and ũ are [x; weak; weak2], each mixed with a partner among all of them, and so are their labels [y; q; q].

    Attributes:
        temperature: of the sharpening.
        mixup: α of λ ~ Beta(α, α), λ ← max(λ, 1 − λ), one for every sample; None for no mixup.
        weight: w, of the unlabeled term, once its ramp is over.
        ramp: the share of the stage over which it grows.
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
    """What a step of `ReMixMatch` takes."""

    ramp: Tensor  # 0-d
    mix: SampleMix | None  # as of `MixMatch`
    quarters: Tensor | None  # (U,) int64, by which strong views are turned


@dataclass(frozen=True)
class ReMixMatch(Objective):
    """MixMatch with aligned guesses that strong views learn, mixed and plain, and rotations (Berthelot et al. 2020).

    soft CE(x̃, ỹ) + w·r·mean soft CE(ũ, q̃) + v·r·mean soft CE(strong, q) + s·mean CE(turned strong, quarters).
    q = sharpen(align(p(weak))) is one guess for the weak view and all strong ones. The memory knows how often each
    class was given (the mean of the last steps' probabilities) and how often it is true (a moving average over labels),
    both from 1/C, and is used before it is moved. By how many quarters an image was turned is told by a linear layer on
    what the net's last layer reads; features of frozen encoders cannot be turned, and have no such term.

    Attributes:
        temperature: of the sharpening.
        mixup: as of `MixMatch`.
        strong_views: how many strong views of each unlabeled image are mixed.
        weight: w, once its ramp is over.
        weight_strong: v, likewise, of a strong view that is not mixed.
        weight_rotation: s, without a ramp.
        ramp: the share of the stage over which the first two grow.
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
        """A weak one and as many strong ones as wished for."""
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
    """Logits and soft labels of [labeled; views of unlabeled images], all mixed with one another."""
    images = torch.cat([batch.images, *views])
    soft = torch.cat([targets.one_hot(batch.truth, guess.shape[1]), *[guess] * len(views)])
    if mix is None:
        return cast.net(images), soft
    return cast.net(mix.blend(images)), mix.blend(soft)
