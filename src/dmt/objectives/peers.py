"""Cross pseudo supervision: two nets teach each other within a step, with or without CutMix.

One backward over the sum of all terms is enough: targets are detached, so each term reaches only one net.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from dmt.core import losses, pasting
from dmt.core.pasting import Boxes, Paste
from dmt.objectives.base import Cast, Cost, Loss, Objective, Progress, detached
from dmt.objectives.itself import supervised, sure
from dmt.options import neutral
from dmt.types import WEAK, Batch, BatchShape


@dataclass(frozen=True)
class CrossPseudo(Objective):
    """Σ_i CE(f_i, y) + w·(CE(p₁, argmax p₂) + CE(p₂, argmax p₁)) over labeled and unlabeled images (Chen et al. 2021).

    All sites count equally: there is no threshold and no ramp.

    Attributes:
        weight: w.
        hard: in the labeled term, train on hard sites only, at least this share of all; None for all sites.
    """

    lines: ClassVar[int] = 2
    views: ClassVar[tuple[str, ...]] = (WEAK,)
    labeled_view: ClassVar[str] = WEAK

    weight: float = 1.5
    hard: float | None = neutral(None)

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(2 * shape.images)

    def loss(self, cast: Cast, batch: Batch, draw: None) -> Loss:
        count = len(batch.views[WEAK])
        images = torch.cat([batch.views[WEAK], batch.images])
        first, second = (net(images) for net in cast.nets)
        labeled = supervised(first[count:], batch, self.hard) + supervised(second[count:], batch, self.hard)
        valid = with_labeled(batch)
        cross = taught(first, sure(second)[1], valid) + taught(second, sure(first)[1], valid)
        logged = detached(labeled=labeled, unlabeled=cross, agree=agreement(first[:count], second[:count]))
        return Loss(labeled + self.weight * cross, logged)


@dataclass(frozen=True)
class CrossPseudoPasted(Objective):
    """Cross pseudo supervision with CutMix: nets label the original images and learn from pasted images and labels.

    The cross term is over unlabeled images only.

    Attributes:
        weight: w.
        boxes: number of pasted boxes per image.
        area: range of the share of the image that the boxes cover in total, without regard to overlaps.
        hard: as in `CrossPseudo`.
    """

    lines: ClassVar[int] = 2
    views: ClassVar[tuple[str, ...]] = (WEAK,)
    labeled_view: ClassVar[str] = WEAK

    weight: float = 1.0
    boxes: int = 3
    area: tuple[float, float] = (0.25, 0.5)
    hard: float | None = neutral(None)

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(2 * shape.images, 2 * shape.unlabeled)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> Paste:
        low, high = (each / self.boxes for each in self.area)
        rng, size = progress.stream("paste"), (shape.height, shape.width)
        return pasting.draw_box(shape.unlabeled, size, Boxes((low, high), self.boxes), rng, device)

    def loss(self, cast: Cast, batch: Batch, draw: Paste) -> Loss:
        clean = batch.views[WEAK]
        guesses = [net.peek(clean) for net in cast.nets]
        labels = [draw.apply(sure(guess)[1]) for guess in guesses]
        images = torch.cat([draw.apply(clean), batch.images])
        first, second = (net(images) for net in cast.nets)
        known = [each[len(clean) :] for each in (first, second)]
        labeled = supervised(known[0], batch, self.hard) + supervised(known[1], batch, self.hard)
        valid = None if batch.valid is None else draw.apply(batch.valid)
        cross = taught(first[: len(clean)], labels[1], valid) + taught(second[: len(clean)], labels[0], valid)
        logged = detached(labeled=labeled, unlabeled=cross, agree=agreement(*guesses))
        return Loss(labeled + self.weight * cross, logged)


def taught(logits: Tensor, labels: Tensor, valid: Tensor | None) -> Tensor:
    """Return the mean cross-entropy with the other net's labels over valid sites."""
    return losses.mean_over(losses.per_site(logits, labels), valid)


def agreement(first: Tensor, second: Tensor) -> Tensor:
    """Return the share of sites for which both nets predict the same label."""
    return (first.detach().argmax(1) == second.detach().argmax(1)).float().mean()


def with_labeled(batch: Batch) -> Tensor | None:
    """Return the valid sites of [unlabeled; labeled], or None if all are: in labeled images, those with a label."""
    if batch.valid is None:
        return None
    return torch.cat([batch.valid, batch.truth >= 0])
