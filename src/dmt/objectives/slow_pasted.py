"""A slow copy of the net labels images that are pasted by more than a box: ClassMix, AugSeg.

As in `slow`: the copy is asked in eval mode, and labeled and unlabeled terms are separate means.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from dmt.core import losses, pasting, trees
from dmt.core.pasting import ClassDraw, Paste
from dmt.objectives.base import Cast, Cost, Loss, Objective, Progress, detached
from dmt.objectives.itself import supervised, sure
from dmt.types import IGNORE, STRONG, WEAK, Batch, BatchShape


@dataclass(frozen=True)
class ClassMix(Objective):
    """CE(x, y) + w·s·mean CE(pasted, argmax q_f' pasted), s the share of sure pixels (Olsson et al. 2021).

    Half of the classes that the slow copy finds in an image are pasted onto another, in strong colors; labels,
    confidence and valid plane are pasted alike. s is one number for the whole batch.

    Attributes:
        threshold: of the slow copy's confidence.
        weight: w.
    """

    views: ClassVar[tuple[str, ...]] = (WEAK, STRONG)
    labeled_view: ClassVar[str] = WEAK
    slow: ClassVar[bool] = True

    threshold: float = 0.968
    weight: float = 1.0

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.images, shape.unlabeled)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> ClassDraw:
        return pasting.draw_classes(shape.unlabeled, progress.stream("paste"), device)

    def loss(self, cast: Cast, batch: Batch, draw: ClassDraw) -> Loss:
        labeled = supervised(cast.net(batch.images), batch)
        confidence, labels = sure(cast.teacher(batch.views[WEAK]))
        paste = draw.paste(labels, batch.valid)
        valid = None if batch.valid is None else paste.apply(batch.valid)
        share = losses.mean_over((paste.apply(confidence) >= self.threshold).float(), valid)
        found = cast.net(paste.apply(batch.views[STRONG]))
        unlabeled = losses.mean_over(losses.per_site(found, paste.apply(labels)), valid)
        logged = detached(labeled=labeled, unlabeled=unlabeled, kept=share, pasted=paste.inside.float().mean())
        return Loss(labeled + self.weight * share * unlabeled, logged)


class AugSegDraw(NamedTuple):
    """What a step of AugSeg takes."""

    paste: Paste
    patches: Tensor  # (U, H, W) bool: where an image gets a labeled patch, if it gets one
    givers: Tensor  # (U,) int64: the labeled image that it is from
    chance: Tensor  # (U,) float32 in [0, 1): an image gets its patch if this is below its doubt


class Planes(NamedTuple):
    """An unlabeled batch and what is known of its pixels."""

    images: Tensor  # (N, C, H, W)
    labels: Tensor  # (N, H, W), IGNORE where there is none
    confidence: Tensor
    valid: Tensor

    def pasted(self, paste: Paste, source: "Planes") -> "Planes":
        """All of them with boxes of ``source``."""
        return Planes(*(paste.apply(mine, theirs) for mine, theirs in zip(self, source, strict=True)))


@dataclass(frozen=True)
class AugSeg(Objective):
    """CE(x, y) + w·mean(1[max q_f' ≥ τ]·CE(pasted, argmax q_f')), what is pasted chosen by trust (Zhao et al. 2023).

    An image's trust is the mean of (1 − H(q)/log C)·max q. In a copy of the batch images get, with probability
    1 − trust, a patch of a labeled image with its truth; then every image gets a box of another image of that copy.

    Attributes:
        threshold: τ.
        weight: w.
        box: a, b of the area 1 − Beta(a, b) of boxes.
        patch: the same of labeled patches.
    """

    views: ClassVar[tuple[str, ...]] = (WEAK, STRONG)
    labeled_view: ClassVar[str] = WEAK
    slow: ClassVar[bool] = True

    threshold: float = 0.95
    weight: float = 1.0
    box: tuple[float, float] = (4.0, 4.0)
    patch: tuple[float, float] = (8.0, 2.0)

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.images, shape.unlabeled)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> AugSegDraw:
        rng, size, count = progress.stream("paste"), (shape.height, shape.width), shape.unlabeled
        boxes, patches = (
            pasting.boxes_of(1.0 - rng.beta(*given, (count, 1)), size, rng, device) for given in (self.box, self.patch)
        )
        return AugSegDraw(
            paste=Paste(boxes, trees.send(pasting.roll(count, rng), device)),
            patches=patches,
            givers=trees.send(rng.integers(shape.labeled, size=count), device),
            chance=trees.send(rng.random(count, dtype="float32"), device),
        )

    def loss(self, cast: Cast, batch: Batch, draw: AugSegDraw) -> Loss:
        labeled = supervised(cast.net(batch.images), batch)
        guess = cast.teacher(batch.views[WEAK])
        confidence, labels = sure(guess)
        valid = torch.ones_like(labels, dtype=torch.bool) if batch.valid is None else batch.valid
        doubt = 1.0 - trust(guess, valid)
        plain = Planes(batch.views[STRONG], labels, confidence, valid)
        pasted = plain.pasted(draw.paste, _patched(plain, batch, draw, doubt))
        kept = pasted.confidence >= self.threshold
        sites = losses.per_site(cast.net(pasted.images), pasted.labels) * kept
        unlabeled = losses.mean_over(sites, pasted.valid)
        kept_share = losses.mean_over(kept.float(), pasted.valid)
        logged = detached(labeled=labeled, unlabeled=unlabeled, kept=kept_share, doubt=doubt.mean())
        return Loss(labeled + self.weight * unlabeled, logged)


def trust(logits: Tensor, valid: Tensor) -> Tensor:
    """(N,): the mean over valid pixels of (1 − H(q)/log C)·max q."""
    probabilities = logits.float().softmax(1)
    entropy = -torch.special.xlogy(probabilities, probabilities).sum(1) / math.log(logits.shape[1])
    sites = (1.0 - entropy) * probabilities.max(1).values * valid
    means: Tensor = sites.sum((1, 2)) / valid.sum((1, 2)).clamp_min(1)
    return means


def _patched(plain: Planes, batch: Batch, draw: AugSegDraw, doubt: Tensor) -> Planes:
    """The images with labeled patches, where their doubt decides for one."""
    inside = draw.patches & (draw.chance < doubt)[:, None, None]
    truth = batch.truth[draw.givers]
    return Planes(
        torch.where(inside[:, None], batch.images[draw.givers], plain.images),
        torch.where(inside, truth, plain.labels),
        plain.confidence.masked_fill(inside, 1.0),
        torch.where(inside, truth != IGNORE, plain.valid),
    )
