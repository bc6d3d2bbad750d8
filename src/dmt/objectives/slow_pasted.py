"""The net's EMA copy is the teacher, with more elaborate pasting than a box: ClassMix, AugSeg.

As in `slow`, the EMA copy predicts in eval mode, and the labeled and the unlabeled term are separate means.
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
from dmt.options import neutral
from dmt.types import IGNORE, STRONG, WEAK, Batch, BatchShape


@dataclass(frozen=True)
class ClassMix(Objective):
    """CE(x, y) + w·s·mean CE(pasted, argmax q_f' pasted), s the share of confident pixels (Olsson et al. 2021).

    Half of the classes that the EMA copy finds in the weak view of an image are pasted onto another image. The net sees
    the pasted strong views; labels, confidences and valid pixels are pasted in the same way. s is one number for the
    whole batch.

    Attributes:
        threshold: threshold of the EMA copy's confidence.
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
    """Random draws of one AugSeg step."""

    paste: Paste
    patches: Tensor  # (U, H, W) bool: where an image gets a labeled patch, if it gets one
    givers: Tensor  # (U,) int64: the labeled image that the patch is taken from
    chance: Tensor  # (U,) float32 in [0, 1): an image gets its patch if this is below 1 − trust


class Planes(NamedTuple):
    """Unlabeled images with the labels, confidences and validity of their pixels."""

    images: Tensor  # (N, C, H, W)
    labels: Tensor  # (N, H, W), IGNORE where there is none
    confidence: Tensor  # (N, H, W)
    valid: Tensor  # (N, H, W) bool

    def pasted(self, paste: Paste, source: "Planes") -> "Planes":
        """Return all planes with boxes pasted from ``source``."""
        return Planes(*(paste.apply(mine, theirs) for mine, theirs in zip(self, source, strict=True)))


@dataclass(frozen=True)
class AugSeg(Objective):
    """CE(x, y) + w·mean(1[max q_f' ≥ τ]·CE(pasted, argmax q_f')), with adaptive pasting (Zhao et al. 2023).

    q_f' are the EMA copy's probabilities. The trust in an image is the mean of (1 − H(q)/log C)·max q over its pixels.
    In a copy of the batch, each image gets a patch of a labeled image, with its truth, with probability 1 − trust. Then
    a box from another image of that copy is pasted into every image.

    Attributes:
        threshold: τ.
        weight: w.
        box: a and b of the relative area 1 − Beta(a, b) of boxes.
        patch: a and b likewise for labeled patches.
        hard: in the labeled term, train on hard pixels only, at least this share of all; None for all pixels.
    """

    views: ClassVar[tuple[str, ...]] = (WEAK, STRONG)
    labeled_view: ClassVar[str] = WEAK
    slow: ClassVar[bool] = True

    threshold: float = 0.95
    weight: float = 1.0
    box: tuple[float, float] = (4.0, 4.0)
    patch: tuple[float, float] = (8.0, 2.0)
    hard: float | None = neutral(None)

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
        labeled = supervised(cast.net(batch.images), batch, self.hard)
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
    """Return the mean over valid pixels of (1 − H(q)/log C)·max q for each image, (N,)."""
    probabilities = logits.float().softmax(1)
    entropy = -torch.special.xlogy(probabilities, probabilities).sum(1) / math.log(logits.shape[1])
    sites = (1.0 - entropy) * probabilities.max(1).values * valid
    means: Tensor = sites.sum((1, 2)) / valid.sum((1, 2)).clamp_min(1)
    return means


def _patched(plain: Planes, batch: Batch, draw: AugSegDraw, doubt: Tensor) -> Planes:
    """Return the planes with labeled patches in the images whose draw is below their doubt, 1 − trust."""
    inside = draw.patches & (draw.chance < doubt)[:, None, None]
    truth = batch.truth[draw.givers]
    return Planes(
        torch.where(inside[:, None], batch.images[draw.givers], plain.images),
        torch.where(inside, truth, plain.labels),
        plain.confidence.masked_fill(inside, 1.0),
        torch.where(inside, truth != IGNORE, plain.valid),
    )
