"""UniMatch V1 and V2: features are perturbed between encoder and decoder.

Boxes are pasted as in FixMatch-Seg. Labels, confidences and valid pixels are pasted like the images, and every mean is
over all valid pixels, also those below the threshold.
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
    """Random draws of one step: boxes for each strong view, and which channels are dropped."""

    pastes: tuple[Paste, ...]
    seeds: Tensor  # (U,) int64, of dropped channels
    whole: Tensor  # (U,) bool, images that keep all channels; used by UniMatch V2 only


@dataclass(frozen=True)
class UniMatch(Objective):
    """(CE(x, y) + ¼L_s1 + ¼L_s2 + ½L_fp)/2: two strong views, and channel dropout on the weak one (Yang et al. 2023).

    The targets are the net's labels for the weak view. L_s1 and L_s2 are the losses of two strong views, each with its
    own pasted boxes; L_fp is that of the weak view, decoded from features of which half of the channels are dropped.

    Attributes:
        threshold: pixels below this confidence are ignored.
        area: range of the share of the image that a box covers.
        share: probability that an image gets a box.
        hard: in the labeled term, train on hard pixels only, at least this share of all; None for all pixels.
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
    """(CE(x, y) + ½L_s1 + ½L_s2)/2: two strong views with complementary channel dropout (Yang et al. 2025).

    The EMA copy labels the weak view. About half of the channels of the first strong view's features are dropped, and
    the others in the second view's; a random half of the images keeps all channels.

    Attributes:
        threshold: pixels below this confidence are ignored.
        area: range of the share of the image that a box covers.
        share: probability that an image gets a box.
        hard: in the labeled term, train on hard pixels only, at least this share of all; None for all pixels.
    """

    views: ClassVar[tuple[str, ...]] = (WEAK, *VIEWS)
    labeled_view: ClassVar[str] = WEAK
    slow: ClassVar[bool] = True
    features: ClassVar[bool] = True

    threshold: float = 0.95
    area: tuple[float, float] = (0.02, 0.4)
    share: float = 0.5
    hard: float | None = neutral(None)

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.labeled + 2 * shape.unlabeled, shape.unlabeled)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> PerturbedDraw:
        return draw_perturbed(progress, shape, Boxes(self.area, share=self.share), device)

    def loss(self, cast: Cast, batch: Batch, draw: PerturbedDraw) -> Loss:
        size = batch.truth.shape[1:]
        labeled = supervised(cast.net(batch.images), batch, self.hard)
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
    """Draw the boxes of both strong views, and the channels to drop."""
    rng, size, count = progress.stream("paste"), (shape.height, shape.width), shape.unlabeled
    pastes = tuple(pasting.draw_box(count, size, boxes, rng, device) for _ in VIEWS)
    rng = progress.stream("features")
    whole = rng.permutation(count) < count // 2
    return PerturbedDraw(pastes, noise.draw((count,), rng, device), trees.send(whole, device))


def pasted_views(batch: Batch, draw: PerturbedDraw) -> list[Tensor]:
    """Return both strong views, each with its boxes pasted."""
    return [paste.apply(batch.views[view]) for view, paste in zip(VIEWS, draw.pastes, strict=True)]


def taught(
    logits: Tensor, target: tuple[Tensor, Tensor], valid: Tensor | None, paste: Paste | None, threshold: float
) -> Tensor:
    """Return the mean over valid pixels of the cross-entropy with confident labels, pasted like the image was.

    Args:
        logits: (N, C, H, W).
        target: confidence and labels of the images before pasting, (N, H, W) each.
        valid: (N, H, W) bool, before pasting; None for all.
        paste: how the images were pasted; None if they were not.
        threshold: pixels below this confidence contribute 0.
    """
    planes = [*target, *([] if valid is None else [valid])]
    confidence, labels, *rest = planes if paste is None else map(paste.apply, planes)
    sites = losses.per_site(logits, labels) * (confidence >= threshold)
    return losses.mean_over(sites, rest[0] if rest else None)


def channel_masks(features: Features, seeds: Tensor) -> list[Tensor]:
    """Return a mask (N, F, 1, 1) per map: 0 or 2 for each channel of each image, with equal probability."""
    widths = [each.shape[1] for each in features]
    kept = 2.0 * (noise.uniform(seeds, sum(widths)) < 0.5)
    masks = torch.split(kept, widths, 1)
    return [mask[:, :, None, None].to(each.dtype) for mask, each in zip(masks, features, strict=True)]


def complementary_masks(features: Features, draw: PerturbedDraw) -> list[Tensor]:
    """Return a mask per map for [first view; second view]: m and 2 − m, or 1 for images that keep all channels."""
    seeds, whole = draw.seeds, draw.whole[:, None, None, None]
    first = channel_masks(tuple(each[: len(seeds)] for each in features), seeds)
    return [torch.cat([torch.where(whole, 1.0, mask), torch.where(whole, 1.0, 2.0 - mask)]) for mask in first]
