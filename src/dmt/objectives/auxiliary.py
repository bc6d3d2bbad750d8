"""CCT: the main decoder supervises auxiliary decoders that see perturbed features."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from dmt.core import losses, noise, ramps, trees
from dmt.core.schedule import Descent
from dmt.objectives import judges, perturbations
from dmt.objectives.base import Cast, Cost, Loss, Objective, Part, Progress, detached
from dmt.objectives.itself import supervised
from dmt.objectives.perturbations import FEWER, KINDS, Clean, Seeds
from dmt.types import WEAK, Batch, BatchShape, FeatureMap

DECODERS = "decoders"


class SubPixel(nn.Module):
    """Decoder from features to logits: a 1×1 convolution to classes, then sub-pixel upsampling by factors of 2."""

    def __init__(self, width: int, classes: int, doublings: int) -> None:
        super().__init__()
        steps = [
            step
            for _ in range(doublings)
            for step in (nn.Conv2d(classes, 4 * classes, 1), nn.ReLU(), nn.PixelShuffle(2))
        ]
        self.body = nn.Sequential(nn.Conv2d(width, classes, 1, bias=False), *steps)

    def forward(self, features: Tensor, size: tuple[int, int]) -> Tensor:
        """Decode features (N, F, h, w) to (N, classes, H, W); feature i becomes the pixels from stride·i on."""
        return self.body(features)[..., : size[0], : size[1]]  # type: ignore[no-any-return]


class CCTDraw(NamedTuple):
    """Schedule value and random seeds of one CCT step."""

    ramp: Tensor  # 0-d, up to 1
    seeds: Tensor  # (U, 3, decoders per kind) int64: for dropped channels, the limit of saliency, and cutouts
    maps: Tensor  # (2, decoders per kind) int64: for noise, and for the initial direction of adversarial noise

    def of(self, number: int) -> Seeds:
        """Return the seeds of the decoders with this number, one of each kind."""
        return Seeds(*self.seeds[:, :, number].unbind(1), *self.maps[:, number].unbind())


@dataclass(frozen=True)
class CCT(Objective):
    """CE(x, y) + w·r·mean_k |p_k(u) − p(u)|²/C: auxiliary decoders learn from the main one (Ouali et al. 2020).

    Auxiliary decoder k sees a perturbed version of the encoder's last feature map. So the encoder and the auxiliary
    decoders learn from unlabeled images, and the main decoder from labels alone.

    Attributes:
        weight: w.
        ramp: share of the stage over which r grows to 1, by exp(−5(1 − t)²).
        each: decoders per kind of perturbation; kinds in `perturbations.FEWER` get a third of it, at least one.
        descent: optimizer of the auxiliary decoders.
        kinds: kinds of perturbations, names from `perturbations.KINDS` in the order of that.
        background: the class that is no object.
    """

    views: ClassVar[tuple[str, ...]] = (WEAK,)
    labeled_view: ClassVar[str] = WEAK
    features: ClassVar[bool] = True
    teaches_encoder: ClassVar[bool] = True

    weight: float = 30.0
    ramp: float = 0.1
    each: int = 6
    descent: Descent = Descent(0.01)
    kinds: tuple[str, ...] = KINDS
    background: int = 0

    @property
    def decoders(self) -> list[tuple[str, int]]:
        """Kind of perturbation of every auxiliary decoder, and its number among the decoders of that kind."""
        few = max(1, self.each // 3)
        return [(kind, number) for kind in self.kinds for number in range(few if kind in FEWER else self.each)]

    def parts_on(self, features: tuple[FeatureMap, ...], classes: int) -> Mapping[str, Part]:
        last = features[-1]
        doublings = round(math.log2(last.stride))
        made = nn.ModuleList(SubPixel(last.width, classes, doublings) for _ in self.decoders)
        return {DECODERS: Part(made, self.descent)}

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.images)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> CCTDraw:
        rng = progress.stream("features")
        ramp = trees.send(ramps.exponential(progress.fraction, self.ramp), device)
        seeds = noise.draw((shape.unlabeled, 3, self.each), rng, device)
        return CCTDraw(ramp, seeds, noise.draw((2, self.each), rng, device))

    def loss(self, cast: Cast, batch: Batch, draw: CCTDraw) -> Loss:
        count, size = len(batch.views[WEAK]), (batch.truth.shape[1], batch.truth.shape[2])
        features = cast.divided.features(torch.cat([batch.views[WEAK], batch.images]))
        logits = cast.divided.decode(features, size)
        labeled = supervised(logits[count:], batch)
        target, last = logits[:count].detach().softmax(1), features[-1][:count].float()
        objects = perturbations.objects_in(target.argmax(1), self.background, (last.shape[2], last.shape[3]))
        clean = Clean(last, objects, batch.valid)
        modules = cast.parts[DECODERS]
        assert isinstance(modules, nn.ModuleList)
        terms = []
        for decoder, (kind, number) in zip(modules, self.decoders, strict=True):
            seen = perturbations.perturb(kind, clean, draw.of(number), partial(_still, decoder, size))
            found = decoder(seen, size).softmax(1)
            terms.append(losses.mean_over(losses.squared(found, target), batch.valid))
        unlabeled = torch.stack(terms).mean()
        logged = detached(labeled=labeled, unlabeled=unlabeled, weight=self.weight * draw.ramp)
        return Loss(labeled + self.weight * draw.ramp * unlabeled, logged)


def _still(decoder: nn.Module, size: tuple[int, int], features: Tensor) -> Tensor:
    """Return a decoder's logits, with gradient to the features and none to its parameters."""
    return judges.frozen(decoder, features, size)  # type: ignore[no-any-return]
