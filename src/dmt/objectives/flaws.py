"""GCT: two nets; at each pixel, the one in which a flaw detector sees the smaller flaw teaches the other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from dmt.core import losses, ramps, trees
from dmt.objectives import judges
from dmt.objectives.base import Cast, Cost, Loss, Objective, Part, Progress, detached
from dmt.objectives.itself import supervised
from dmt.objectives.judged import judge_descent, one_hot
from dmt.objectives.judges import FlawDetector
from dmt.objectives.peers import with_labeled
from dmt.types import IGNORE, WEAK, Batch, BatchShape

DETECTOR = "detector"
CLIP = 0.1
"""An image whose flaw map is nowhere above this counts as free of flaws."""

TINY = 1e-9


@dataclass(frozen=True)
class GCT(Objective):
    """Σ_i [CE(f_i, y) + w·r·mean |p_i − q_i|²/C + c·mean F(p_i)²] + d·(loss of F) (Ke et al. 2020).

    F is the flaw detector; its input is [image; probabilities], and it learns from labeled images where probabilities
    are far from the ground truth. At each pixel, q_i are the probabilities of the net with the smaller flaw. The third
    term is 0 at pixels where not both nets have flaws above the threshold. Labeled images take part in every term.

    Attributes:
        consistency: w.
        ramp: share of the stage over which r grows to 1, by exp(−5(1 − t)²).
        threshold: flaws above this count as 1 when nets are compared, and are corrected where both nets have them.
        correction: c.
        detection: d, weight of the detector's own loss.
        judge_rate: learning rate of the detector (Adam).
        judge_width: channels of the detector's first layer.
    """

    lines: ClassVar[int] = 2
    views: ClassVar[tuple[str, ...]] = (WEAK,)
    labeled_view: ClassVar[str] = WEAK

    consistency: float = 100.0
    ramp: float = 0.15
    threshold: float = 0.6
    correction: float = 1.0
    detection: float = 10.0
    judge_rate: float = 1e-4
    judge_width: int = 64

    def parts(self, channels: int, classes: int) -> Mapping[str, Part]:
        return {DETECTOR: Part(FlawDetector(channels + classes, self.judge_width), judge_descent(self.judge_rate))}

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(2 * shape.images)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> Tensor:
        return trees.send(ramps.exponential(progress.fraction, self.ramp), device)

    def loss(self, cast: Cast, batch: Batch, draw: Tensor) -> Loss:
        count, detector = len(batch.views[WEAK]), cast.parts[DETECTOR]
        images = torch.cat([batch.views[WEAK], batch.images])
        logits = [net(images) for net in cast.nets]
        labeled = torch.stack([supervised(each[count:], batch) for each in logits]).sum()
        probabilities = [each.softmax(1) for each in logits]
        raw = [judges.frozen(detector, torch.cat([images, each], 1)) for each in probabilities]
        maps = [flaw_map(each) for each in raw]
        valid = with_labeled(batch)
        cross = torch.stack(
            [
                losses.mean_over(losses.squared(mine, self._better(mine, theirs, own, other)), valid)
                for mine, theirs, own, other in (
                    (probabilities[0], probabilities[1], maps[0], maps[1]),
                    (probabilities[1], probabilities[0], maps[1], maps[0]),
                )
            ]
        ).sum()
        flawed = (maps[0] > self.threshold) & (maps[1] > self.threshold)
        corrected = torch.stack([losses.mean_over(each**2 * flawed, valid) for each in raw]).sum()
        detected = torch.stack([self._detected(detector, each[count:], batch) for each in probabilities]).sum()
        logged = detached(
            labeled=labeled, unlabeled=cross, correction=corrected, judge=detected, flawed=flawed.float().mean()
        )
        total = labeled + self.consistency * draw * cross + self.correction * corrected
        return Loss(total + self.detection * detected, logged)

    def _better(self, mine: Tensor, theirs: Tensor, own: Tensor, other: Tensor) -> Tensor:
        """Return, at each pixel, the probabilities of the net with the smaller flaw, ``mine`` where they are equal."""
        own, other = (torch.where(each > self.threshold, 1.0, each) for each in (own, other))
        return torch.where((other < own)[:, None], theirs, mine)

    def _detected(self, detector: torch.nn.Module, probabilities: Tensor, batch: Batch) -> Tensor:
        """Return the squared error of the detector on labeled images."""
        known = probabilities.detach()
        wanted = true_flaws(known, batch.truth)
        found = detector(torch.cat([batch.images, known], 1))
        return losses.mean_over((found - wanted) ** 2, batch.truth != IGNORE)


@torch.no_grad()
def flaw_map(raw: Tensor) -> Tensor:
    """Blur the detector's output (N, H, W) and scale each image to 0 … 1; all 0 for images without flaws."""
    smooth = blurred(raw.clamp_min(0.0), 16)
    return scaled(smooth) * (smooth.amax((1, 2), keepdim=True) > CLIP)


@torch.no_grad()
def true_flaws(probabilities: Tensor, truth: Tensor) -> Tensor:
    """Return the detector's target (N, H, W): ½·Σ_c |onehot − p|, blurred, dilated, blurred again and scaled to 0 … 1.

    The difference is 0 where there is no label.
    """
    apart = (one_hot(truth, probabilities) - probabilities).abs().sum(1) / 2 * (truth != IGNORE)
    dilated = F.max_pool2d(blurred(apart, 8)[:, None], 3, 1, 1)[:, 0]
    return scaled(blurred(dilated, 4))


def scaled(maps: Tensor) -> Tensor:
    """Scale each map (N, H, W) to 0 … 1; constant maps become 0."""
    low, high = maps.amin((1, 2), keepdim=True), maps.amax((1, 2), keepdim=True)
    return (maps - low) / (high - low + TINY)


def blurred(maps: Tensor, part: int) -> Tensor:
    """Blur maps (N, H, W) by a Gaussian kernel of about 1/``part`` of the larger side, with replicated borders."""
    radius = max(maps.shape[-2:]) // part // 2
    if radius == 0:
        return maps
    sigma = 0.3 * (radius - 1) + 0.8
    weights = torch.exp(-(torch.arange(-radius, radius + 1, device=maps.device) ** 2) / (2 * sigma**2))
    weights = weights / weights.sum()
    padded = F.pad(maps[:, None], (radius,) * 4, mode="replicate")
    rows = F.conv2d(padded, weights.view(1, 1, -1, 1))
    return F.conv2d(rows, weights.view(1, 1, 1, -1))[:, 0]
