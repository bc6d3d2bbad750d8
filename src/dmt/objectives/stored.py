"""An earlier stage teaches, through the pseudo labels it stored: CL, CBST, DST and DMT in all its variants."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from dmt.core import losses, mixing, ramps, trees, weighting
from dmt.core.mixing import Mix
from dmt.core.weighting import Opinion
from dmt.objectives.base import Cast, Cost, Loss, Objective, Progress, detached
from dmt.types import STRONG, TRAIN, Batch, BatchShape, Target


@dataclass(frozen=True)
class Stored(Objective):
    """Labels and weighted pseudo labels over one normalizer: L = L_X + L_U (docs/decisions, 3 to 5).

    With mixup the weights come from a look at the un-mixed batch, and are mixed like the images; a sample's mixed
    weight scales both of its label terms. Without mixup they come from the training forward itself.

    Attributes:
        weighting: a name of `core.weighting.WEIGHTINGS`. "uniform" has no weight pass.
        gamma: γ1 at the end of its ramp.
        gamma2: γ2, likewise; γ1 if None.
        ramp: let γ grow over the stage; constant otherwise.
        mixup: α of λ ~ Beta(α, α), λ ← max(λ, 1 − λ); None for no mixup.
        double_statistics: let the weight pass update BatchNorm's running statistics too, as the reference did.
    """

    views: ClassVar[tuple[str, ...]] = (TRAIN,)
    stored: ClassVar[bool] = True

    weighting: str
    gamma: float
    gamma2: float | None = None
    ramp: bool = True
    mixup: float | None = None
    double_statistics: bool = False

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.images, shape.images if self.weighs and self.mixup is not None else 0)

    @property
    def weighs(self) -> bool:
        """Whether labels count by what the student thinks of them."""
        return self.weighting != "uniform"

    def weigh(self, logits: Tensor, target: Target) -> tuple[Tensor, Tensor, Tensor | None]:
        """What a student with these logits makes of the pseudo labels, γ at the end of its ramp.

        Returns:
            labels, weights and, if the student is asked, the cases of Eq. 6.
        """
        view = weighting.opinion(logits, target) if self.weighs else None
        return *self._judge(view, target, 1.0), None if view is None else view.cases

    def _judge(self, view: Opinion | None, target: Target, ramp: Tensor | float) -> tuple[Tensor, Tensor]:
        if view is None:
            return weighting.uniform(None, target)
        gamma2 = None if self.gamma2 is None else self.gamma2 * ramp
        return weighting.judge(self.weighting, view, target, self.gamma * ramp, gamma2)

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> "StoredDraw":
        ramp = trees.send(ramps.gamma(progress.fraction) if self.ramp else 1.0, device)
        if self.mixup is None:
            return StoredDraw(ramp, None)
        rng = progress.stream("mixup")
        return StoredDraw(ramp, mixing.draw(shape.images, self.mixup, rng, dominant=True, device=device))

    def loss(self, cast: Cast, batch: Batch, draw: "StoredDraw") -> Loss:
        net = cast.net
        assert batch.pseudo is not None, "a stage that learns from a store needs pseudo labels in its batch"
        (seen,) = self.views
        images = torch.cat([batch.views[seen], batch.images])  # (U + L, C, H, W), pseudo first
        pseudo, target = len(batch.views[seen]), batch.pseudo
        view: Opinion | None = None

        if draw.mix is None:
            logits = net(images)
            if self.weighs:
                view = weighting.opinion(logits[:pseudo], target)
        else:
            if self.weighs:
                # the whole batch is looked at, so that BatchNorm sees the same mixture of samples as in training
                reading = net.peek(images, update_statistics=self.double_statistics)
                view = weighting.opinion(reading[:pseudo], target)
            logits = net(draw.mix.blend(images))

        labels, weights = self._judge(view, target, draw.ramp)
        logged = {"gamma": self.gamma * draw.ramp, **_cases(view, target, weights)}
        labels = torch.cat([labels, batch.truth])
        weights = torch.cat([weights, torch.ones_like(batch.truth, dtype=weights.dtype)])
        sites = losses.per_mixed_site(logits, labels, weights, draw.mix)
        count = losses.labeled_sites(labels).clamp_min(1.0)
        logged |= {"pseudo": sites[:pseudo].sum() / count, "labeled": sites[pseudo:].sum() / count}
        return Loss(sites.sum() / count, detached(**logged))


@dataclass(frozen=True)
class StoredStrong(Stored):
    """The same with pseudo-labeled images in strong views; labeled ones are seen as before. Ours."""

    views: ClassVar[tuple[str, ...]] = (STRONG,)


def _cases(view: Opinion | None, target: Target, weights: Tensor) -> dict[str, Tensor]:
    """Mean weight of pseudo-labeled sites and, if the student was asked, the shares of the three cases."""
    count = losses.labeled_sites(target.labels).clamp_min(1.0)
    parts = {"weight": weights.sum() / count}
    if view is not None:
        parts |= {name: (view.cases == case).sum() / count for name, case in weighting.CASES.items()}
    return parts


class StoredDraw(NamedTuple):
    """What a step of `Stored` takes: where γ stands on its ramp, and what is mixed with what."""

    ramp: Tensor  # 0-d
    mix: Mix | None
