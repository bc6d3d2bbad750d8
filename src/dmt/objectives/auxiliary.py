"""The net's own decoder teaches others that see perturbed features: CCT.

Of the published perturbations there are three: dropped channels, dropped salient places, noise. Those that need
contours of objects, a class that is background, or a gradient to the features are left out.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from dmt.core import losses, noise, ramps, trees
from dmt.core.schedule import Descent
from dmt.objectives.base import Cast, Cost, Loss, Objective, Part, Progress, detached
from dmt.objectives.itself import supervised
from dmt.objectives.perturbed import channel_masks
from dmt.types import WEAK, Batch, BatchShape, FeatureMap

DECODERS = "decoders"
KINDS = 3
SALIENT = (0.7, 0.9)
"""Places above such a share of the largest mean activation are dropped."""

NOISE = 0.3
"""Features are multiplied by 1 ± this at most."""


class SubPixel(nn.Module):
    """Features to logits: a 1×1 convolution to classes, then doublings in which channels become pixels."""

    def __init__(self, width: int, classes: int, doublings: int) -> None:
        super().__init__()
        steps = [
            step
            for _ in range(doublings)
            for step in (nn.Conv2d(classes, 4 * classes, 1), nn.ReLU(), nn.PixelShuffle(2))
        ]
        self.body = nn.Sequential(nn.Conv2d(width, classes, 1, bias=False), *steps)

    def forward(self, features: Tensor, size: tuple[int, int]) -> Tensor:
        """(N, F, h, w) to (N, classes, H, W): feature i becomes the pixels from stride·i on."""
        return self.body(features)[..., : size[0], : size[1]]  # type: ignore[no-any-return]


class CCTDraw(NamedTuple):
    """What a step of CCT takes."""

    ramp: Tensor  # 0-d
    seeds: Tensor  # (U, 2, decoders of a kind) int64: of channels, and of how much is salient
    noise: Tensor  # (decoders of a kind,) int64: one map of noise serves the whole batch


@dataclass(frozen=True)
class CCT(Objective):
    """CE(x, y) + w·r·mean_k |p_k(u) − p(u)|²/C: auxiliary decoders learn from the main one (Ouali et al. 2020).

    Decoder k sees perturbed features of the last map. So encoder and auxiliary decoders learn from unlabeled images,
    the main decoder from labels alone.

    Attributes:
        weight: w, once its ramp is over.
        ramp: the share of the stage over which it grows, by exp(−5(1 − t)²).
        each: decoders for each of the three kinds of perturbation.
        descent: the decoders' rule.
    """

    views: ClassVar[tuple[str, ...]] = (WEAK,)
    labeled_view: ClassVar[str] = WEAK
    features: ClassVar[bool] = True
    teaches_encoder: ClassVar[bool] = True

    weight: float = 30.0
    ramp: float = 0.1
    each: int = 6
    descent: Descent = Descent(0.01)

    def parts_on(self, features: tuple[FeatureMap, ...], classes: int) -> Mapping[str, Part]:
        last = features[-1]
        doublings = round(math.log2(last.stride))
        made = nn.ModuleList(SubPixel(last.width, classes, doublings) for _ in range(KINDS * self.each))
        return {DECODERS: Part(made, self.descent)}

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.images)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> CCTDraw:
        rng = progress.stream("features")
        ramp = trees.send(ramps.exponential(progress.fraction, self.ramp), device)
        seeds = noise.draw((shape.unlabeled, 2, self.each), rng, device)
        return CCTDraw(ramp, seeds, noise.draw((self.each,), rng, device))

    def loss(self, cast: Cast, batch: Batch, draw: CCTDraw) -> Loss:
        count, size = len(batch.views[WEAK]), (batch.truth.shape[1], batch.truth.shape[2])
        features = cast.divided.features(torch.cat([batch.views[WEAK], batch.images]))
        logits = cast.divided.decode(features, size)
        labeled = supervised(logits[count:], batch)
        target = logits[:count].detach().softmax(1)
        decoders = cast.parts[DECODERS]
        assert isinstance(decoders, nn.ModuleList)
        terms = [
            losses.mean_over(losses.squared(decoder(seen, size).softmax(1), target), batch.valid)
            for decoder, seen in zip(decoders, perturbed(features[-1][:count].float(), draw), strict=True)
        ]
        unlabeled = torch.stack(terms).mean()
        logged = detached(labeled=labeled, unlabeled=unlabeled, weight=self.weight * draw.ramp)
        return Loss(labeled + self.weight * draw.ramp * unlabeled, logged)


def perturbed(features: Tensor, draw: CCTDraw) -> list[Tensor]:
    """Features (N, F, h, w) as each decoder sees them, kind by kind."""
    channels, salient = draw.seeds.unbind(1)  # (N, decoders)
    dropped = [features * channel_masks((features,), seeds)[0] for seeds in channels.unbind(1)]
    quiet = [features * _quiet(features, noise.uniform(seeds, 1)) for seeds in salient.unbind(1)]
    maps = [noise.uniform(seed, features[0].numel()).view(features.shape[1:]) for seed in draw.noise]
    noisy = [features * (1.0 + NOISE * (2.0 * each - 1.0)) for each in maps]
    return [*dropped, *quiet, *noisy]


def _quiet(features: Tensor, chance: Tensor) -> Tensor:
    """Where the mean activation is below a random share of its largest, (N, 1, h, w); ``chance`` is (N, 1)."""
    activation = features.detach().mean(1)
    low, high = SALIENT
    limit = activation.flatten(1).amax(1, keepdim=True) * (low + (high - low) * chance)  # (N, 1)
    return (activation < limit[:, :, None]).float()[:, None]
