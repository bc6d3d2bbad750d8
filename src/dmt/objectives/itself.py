"""The net is its own teacher within a step: Online ST, Pseudo-Label, Π-model, UDA, FixMatch for images and pixels.

The labeled and the unlabeled term are separate means, each over all of its sites, also those below the threshold. Only
Online ST, an ablation of the paper, has one normalizer for both.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from dmt.core import losses, pasting, ramps, trees
from dmt.core.pasting import Boxes, Paste
from dmt.objectives.base import Cast, Cost, Loss, Objective, Progress, detached
from dmt.options import neutral
from dmt.types import IGNORE, STRONG, TRAIN, WEAK, Batch, BatchShape

WEAK2 = "weak2"


@dataclass(frozen=True)
class Online(Objective):
    """Cross-entropy with the truth and with the net's own current labels where it is confident (docs/decisions, 19).

    Attributes:
        threshold: sites at or below this confidence are ignored.
    """

    views: ClassVar[tuple[str, ...]] = (TRAIN,)

    threshold: float = 0.9

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.images)

    def loss(self, cast: Cast, batch: Batch, draw: None) -> Loss:
        unlabeled = len(batch.views[TRAIN])
        logits = cast.net(torch.cat([batch.views[TRAIN], batch.images]))  # (U + L, C, *S), unlabeled first
        confidence, guesses = sure(logits[:unlabeled])
        kept = confidence > self.threshold
        kept = kept if batch.valid is None else kept & batch.valid  # padding is ignored
        guesses = torch.where(kept, guesses, IGNORE)
        labels = torch.cat([guesses, batch.truth])
        sites = losses.per_site(logits, labels)
        count = losses.labeled_sites(labels).clamp_min(1.0)
        logged = detached(
            kept=losses.labeled_sites(guesses) / guesses.numel(),
            pseudo=sites[:unlabeled].sum() / count,
            labeled=sites[unlabeled:].sum() / count,
        )
        return Loss(sites.sum() / count, logged)


@dataclass(frozen=True)
class PseudoLabel(Objective):
    """CE(x, y) + w·r·mean(1[max p(u) > τ]·CE(u, argmax p(u))), label and loss from the same weak view (Lee 2013).

    Attributes:
        threshold: τ.
        weight: w.
        ramp: share of the stage over which r grows from 0 to 1.
    """

    views: ClassVar[tuple[str, ...]] = (WEAK,)
    labeled_view: ClassVar[str] = WEAK

    threshold: float = 0.95
    weight: float = 1.0
    ramp: float = 0.4

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.images)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> Tensor:
        return trees.send(self.weight * ramps.linear(progress.fraction, self.ramp), device)

    def loss(self, cast: Cast, batch: Batch, draw: Tensor) -> Loss:
        count = len(batch.views[WEAK])
        logits = cast.net(torch.cat([batch.views[WEAK], batch.images]))
        labeled = supervised(logits[count:], batch)
        confidence, labels = sure(logits[:count])
        kept = confidence > self.threshold
        unlabeled = losses.mean_over(losses.per_site(logits[:count], labels) * kept, batch.valid)
        logged = detached(
            labeled=labeled, unlabeled=unlabeled, weight=draw, kept=losses.mean_over(kept.float(), batch.valid)
        )
        return Loss(labeled + draw * unlabeled, logged)


@dataclass(frozen=True)
class PiModel(Objective):
    """CE(x, y) + w·r·mean |p(v₁) − p(v₂)|²/C over two weak views; gradient through the first (Laine & Aila 2017).

    Running statistics come from labeled images alone, as in the implementation of the published numbers.

    Attributes:
        weight: w.
        ramp: share of the stage over which r grows from 0 to 1.
    """

    views: ClassVar[tuple[str, ...]] = (WEAK, WEAK2)
    labeled_view: ClassVar[str] = WEAK

    weight: float = 20.0
    ramp: float = 0.4

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.images, shape.unlabeled)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> Tensor:
        return trees.send(self.weight * ramps.linear(progress.fraction, self.ramp), device)

    def loss(self, cast: Cast, batch: Batch, draw: Tensor) -> Loss:
        return consistency(cast, batch, cast.net.peek, draw)


@dataclass(frozen=True)
class UDA(Objective):
    """CE(x, y) + w·mean(1[max p(weak) > τ]·KL(softmax(z(weak)/T) ‖ p(strong))), one joint forward (Xie et al. 2020).

    The mask depends on the confidence before sharpening.

    Attributes:
        threshold: τ.
        temperature: T, temperature of the sharpened target.
        weight: w.
    """

    views: ClassVar[tuple[str, ...]] = (WEAK, STRONG)
    labeled_view: ClassVar[str] = WEAK

    threshold: float = 0.8
    temperature: float = 0.4
    weight: float = 1.0

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.labeled + 2 * shape.unlabeled)

    def loss(self, cast: Cast, batch: Batch, draw: None) -> Loss:
        weak, strong, known = joint(cast, batch)
        labeled = supervised(known, batch)
        target = (weak.detach() / self.temperature).softmax(1)
        kept = sure(weak)[0] > self.threshold
        unlabeled = losses.mean_over(losses.divergence(strong, target) * kept, batch.valid)
        logged = detached(labeled=labeled, unlabeled=unlabeled, kept=losses.mean_over(kept.float(), batch.valid))
        return Loss(labeled + self.weight * unlabeled, logged)


@dataclass(frozen=True)
class FixMatch(Objective):
    """CE(x, y) + w·mean(1[max p(weak) ≥ τ]·CE(strong, argmax p(weak))), one joint forward (Sohn et al. 2020).

    Attributes:
        threshold: τ.
        weight: w.
    """

    views: ClassVar[tuple[str, ...]] = (WEAK, STRONG)
    labeled_view: ClassVar[str] = WEAK

    threshold: float = 0.95
    weight: float = 1.0

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.labeled + 2 * shape.unlabeled)

    def loss(self, cast: Cast, batch: Batch, draw: None) -> Loss:
        weak, strong, known = joint(cast, batch)
        labeled = supervised(known, batch)
        confidence, labels = sure(weak)
        kept = confidence >= self.threshold
        unlabeled = losses.mean_over(losses.per_site(strong, labels) * kept, batch.valid)
        logged = detached(labeled=labeled, unlabeled=unlabeled, kept=losses.mean_over(kept.float(), batch.valid))
        return Loss(labeled + self.weight * unlabeled, logged)


@dataclass(frozen=True)
class FixMatchSeg(Objective):
    """(CE(x, y) + L_s)/2: FixMatch for pixels with a box pasted into the strong view, UniMatch's point of comparison.

    Labels and confidences come from the weak view and are pasted like the image. L_s is the mean over valid pixels of
    the cross-entropy where the confidence reaches the threshold.

    Attributes:
        threshold: pixels below this confidence are ignored.
        area: range of the share of the image that a box covers.
        share: probability that an image gets a box.
        hard: in the labeled term, train on hard pixels only, at least this share of all; None for all pixels.
    """

    views: ClassVar[tuple[str, ...]] = (WEAK, STRONG)
    labeled_view: ClassVar[str] = WEAK

    threshold: float = 0.95
    area: tuple[float, float] = (0.02, 0.4)
    share: float = 0.5
    hard: float | None = neutral(None)

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.labeled + 2 * shape.unlabeled)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> Paste:
        rng, size = progress.stream("paste"), (shape.height, shape.width)
        return pasting.draw_box(shape.unlabeled, size, Boxes(self.area, share=self.share), rng, device)

    def loss(self, cast: Cast, batch: Batch, draw: Paste) -> Loss:
        count = len(batch.views[WEAK])
        logits = cast.net(torch.cat([batch.views[WEAK], batch.images]))
        labeled = supervised(logits[count:], batch, self.hard)
        confidence, labels = sure(logits[:count])
        kept = draw.apply(confidence) >= self.threshold
        valid = None if batch.valid is None else draw.apply(batch.valid)
        found = cast.net(draw.apply(batch.views[STRONG]))
        unlabeled = losses.mean_over(losses.per_site(found, draw.apply(labels)) * kept, valid)
        logged = detached(labeled=labeled, unlabeled=unlabeled, kept=losses.mean_over(kept.float(), valid))
        return Loss((labeled + unlabeled) / 2, logged)


def consistency(cast: Cast, batch: Batch, look: Callable[[Tensor], Tensor], weight: Tensor) -> Loss:
    """Return CE(x, y) + w·mean |p(v₁) − q(v₂)|²/C, where q are the probabilities of the teacher's logits.

    BatchNorm's running statistics come from labeled images alone.

    Args:
        cast: what takes part in the step.
        batch: the batch, with two weak views of unlabeled images.
        look: the teacher: images to logits without gradient.
        weight: w, 0-d.
    """
    labeled = supervised(cast.net(batch.images), batch)
    target = look(batch.views[WEAK2]).softmax(1)
    found = cast.net(batch.views[WEAK], update_statistics=False).softmax(1)
    unlabeled = losses.mean_over(losses.squared(found, target), batch.valid)
    return Loss(labeled + weight * unlabeled, detached(labeled=labeled, unlabeled=unlabeled, weight=weight))


def supervised(logits: Tensor, batch: Batch, hard: float | None = None) -> Tensor:
    """Return the mean cross-entropy over labeled sites or, if ``hard`` is a share, over the hard ones among them."""
    sites = losses.per_site(logits, batch.truth)
    if hard is None:
        return losses.mean_over_labeled(sites, batch.truth)
    return losses.mean_over_hard(sites, batch.truth, hard)


@torch.no_grad()
def sure(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Return the confidence and the predicted label of every site, (N, *S) each, without gradient."""
    confidence, labels = logits.detach().float().softmax(1).max(1)
    return confidence, labels


def joint(cast: Cast, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """Return the logits of the weak view, the strong view and the labeled images from one joint forward."""
    weak, strong = batch.views[WEAK], batch.views[STRONG]
    logits = cast.net(torch.cat([weak, strong, batch.images]))
    first, second = len(weak), len(weak) + len(strong)
    return logits[:first], logits[first:second], logits[second:]
