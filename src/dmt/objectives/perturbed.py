"""Features are perturbed inside the net, between encoder and decoder: UniMatch V1 and V2.

Boxes are those of FixMatch-Seg. Labels, confidence and valid planes are pasted like the images, and every mean is over
the valid pixels, those that teach nothing included.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from dmt.core import losses, noise, pasting, trees
from dmt.core.pasting import Boxes, Paste
from dmt.objectives.base import Cast, Cost, Loss, Objective, Progress, detached
from dmt.objectives.itself import supervised, sure
from dmt.options import neutral
from dmt.types import STRONG, WEAK, Batch, BatchShape

STRONG2 = "strong2"
VIEWS = (STRONG, STRONG2)
Features = tuple[Tensor, ...]


class PerturbedDraw(NamedTuple):
    """What a step takes: a box for each strong view, and what decides which channels are dropped."""

    pastes: tuple[Paste, ...]
    seeds: Tensor  # (U,) int64
    whole: Tensor  # (U,) bool, images whose features stay as they are


@dataclass(frozen=True)
class UniMatch(Objective):
    """(CE(x, y) + ¼L_s1 + ¼L_s2 + ½L_fp)/2: two strong views and the weak one's dropped features (Yang et al. 2023).

    The net labels the weak view. L_s1 and L_s2 are of strong views, each pasted by a box of its own; L_fp is of the
    weak view, decoded from features of which half of the channels are dropped.

    Attributes:
        threshold: pixels of less confidence teach nothing.
        area: the share of the image that a box covers, from … to.
        share: probability that an image gets a box.
        hard: learn labels from hard pixels, at least this share of all; None for all of them.
    """

    views: ClassVar[tuple[str, ...]] = (WEAK, *VIEWS)
    labeled_view: ClassVar[str] = WEAK
    features: ClassVar[bool] = True

    threshold: float = 0.95
    area: tuple[float, float] = (0.02, 0.4)
    share: float = 0.5
    hard: float | None = neutral(None)

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.labeled + 3 * shape.unlabeled)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> PerturbedDraw:
        return draw_perturbed(progress, shape, Boxes(self.area, share=self.share), device)

    def loss(self, cast: Cast, batch: Batch, draw: PerturbedDraw) -> Loss:
        weak, size = batch.views[WEAK], batch.truth.shape[1:]
        count = len(weak)
        features = cast.divided.features(torch.cat([weak, batch.images]))
        ours = tuple(each[:count] for each in features)
        masks = channel_masks(ours, draw.seeds)
        both = tuple(torch.cat([all_, each * mask]) for all_, each, mask in zip(features, ours, masks, strict=True))
        logits = cast.divided.decode(both, (size[0], size[1]))
        clean, known, dropped = logits[:count], logits[count:-count], logits[-count:]
        labeled = supervised(known, batch, self.hard)
        target = sure(clean)
        strong = cast.net(torch.cat(pasted_views(batch, draw)))
        first, second = (
            taught(found, target, batch.valid, paste, self.threshold)
            for found, paste in zip(strong.chunk(2), draw.pastes, strict=True)
        )
        inside = taught(dropped, target, batch.valid, None, self.threshold)
        unlabeled = (first + second) / 4 + inside / 2
        kept = losses.mean_over((target[0] >= self.threshold).float(), batch.valid)
        logged = detached(labeled=labeled, unlabeled=unlabeled, features=inside, kept=kept)
        return Loss((labeled + unlabeled) / 2, logged)


@dataclass(frozen=True)
class UniMatchV2(Objective):
    """(CE(x, y) + ½L_s1 + ½L_s2)/2: the slow copy labels, strong views drop what the other keeps (Yang et al. 2025).

    Half of the channels of the first view's features are dropped, and the other half of the second's; a random half of
    the images keeps all.

    Attributes:
        threshold: pixels of less confidence teach nothing.
        area: the share of the image that a box covers, from … to.
        share: probability that an image gets a box.
    """

    views: ClassVar[tuple[str, ...]] = (WEAK, *VIEWS)
    labeled_view: ClassVar[str] = WEAK
    slow: ClassVar[bool] = True
    features: ClassVar[bool] = True

    threshold: float = 0.95
    area: tuple[float, float] = (0.02, 0.4)
    share: float = 0.5

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.labeled + 2 * shape.unlabeled, shape.unlabeled)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> PerturbedDraw:
        return draw_perturbed(progress, shape, Boxes(self.area, share=self.share), device)

    def loss(self, cast: Cast, batch: Batch, draw: PerturbedDraw) -> Loss:
        size = batch.truth.shape[1:]
        labeled = supervised(cast.net(batch.images), batch)
        target = sure(cast.teacher(batch.views[WEAK]))
        features = cast.divided.features(torch.cat(pasted_views(batch, draw)))
        masks = complementary_masks(features, draw)
        found = cast.divided.decode(
            tuple(each * mask for each, mask in zip(features, masks, strict=True)), (size[0], size[1])
        )
        first, second = (
            taught(logits, target, batch.valid, paste, self.threshold)
            for logits, paste in zip(found.chunk(2), draw.pastes, strict=True)
        )
        unlabeled = (first + second) / 2
        kept = losses.mean_over((target[0] >= self.threshold).float(), batch.valid)
        return Loss((labeled + unlabeled) / 2, detached(labeled=labeled, unlabeled=unlabeled, kept=kept))


def draw_perturbed(progress: Progress, shape: BatchShape, boxes: Boxes, device: torch.device) -> PerturbedDraw:
    """Boxes for both strong views, and channels."""
    rng, size, count = progress.stream("paste"), (shape.height, shape.width), shape.unlabeled
    pastes = tuple(pasting.draw_box(count, size, boxes, rng, device) for _ in VIEWS)
    rng = progress.stream("features")
    whole = rng.permutation(count) < count // 2
    return PerturbedDraw(pastes, noise.draw((count,), rng, device), trees.send(whole, device))


def pasted_views(batch: Batch, draw: PerturbedDraw) -> list[Tensor]:
    """Both strong views, each with its boxes."""
    return [paste.apply(batch.views[view]) for view, paste in zip(VIEWS, draw.pastes, strict=True)]


def taught(
    logits: Tensor, target: tuple[Tensor, Tensor], valid: Tensor | None, paste: Paste | None, threshold: float
) -> Tensor:
    """The mean cross-entropy with (confidence, labels) where they are sure, both pasted like the image was."""
    planes = [*target, *([] if valid is None else [valid])]
    confidence, labels, *rest = planes if paste is None else map(paste.apply, planes)
    sites = losses.per_site(logits, labels) * (confidence >= threshold)
    return losses.mean_over(sites, rest[0] if rest else None)


def channel_masks(features: Features, seeds: Tensor) -> list[Tensor]:
    """0 for a random half of the channels of each map and image, 2 for the others, (N, F, 1, 1)."""
    widths = [each.shape[1] for each in features]
    kept = 2.0 * (noise.uniform(seeds, sum(widths)) < 0.5)
    masks = torch.split(kept, widths, 1)
    return [mask[:, :, None, None].to(each.dtype) for mask, each in zip(masks, features, strict=True)]


def complementary_masks(features: Features, draw: PerturbedDraw) -> list[Tensor]:
    """For [first view; second view]: m and 2 − m, and 1 for images that stay whole."""
    seeds, whole = draw.seeds, draw.whole[:, None, None, None]
    first = channel_masks(tuple(each[: len(seeds)] for each in features), seeds)
    return [torch.cat([torch.where(whole, 1.0, mask), torch.where(whole, 1.0, 2.0 - mask)]) for mask in first]
