"""An earlier stage teaches, through the pseudo labels it stored: CL, CBST, DST and DMT in all its variants."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from dmt.core import losses, mixing, ramps, weighting
from dmt.objectives.base import Loss, Net, Objective, Progress
from dmt.types import Batch, Target

TRAIN = "train"
"""The view of unlabeled images that is augmented like the labeled ones."""

PEEK = 1.0 / 3.0
"""A forward without gradient costs about a third of forward and backward."""


@dataclass(frozen=True)
class Stored(Objective):
    """Labels and weighted pseudo labels over one normalizer: L = L_X + L_U (protocol §1.7 and §2.5).

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

    weighting: str
    gamma: float
    gamma2: float | None = None
    ramp: bool = True
    mixup: float | None = None
    double_statistics: bool = False

    views: ClassVar[tuple[str, ...]] = (TRAIN,)

    @property
    def passes(self) -> float:
        return 1.0 + PEEK if self._peeks else 1.0

    @property
    def _weighs(self) -> bool:
        return self.weighting != "uniform"

    @property
    def _peeks(self) -> bool:
        return self._weighs and self.mixup is not None

    def weigh(self, logits: Tensor, target: Target, ramp: float = 1.0) -> tuple[Tensor, Tensor]:
        """(labels, weights) that a student with these logits gives the pseudo labels."""
        gamma2 = None if self.gamma2 is None else self.gamma2 * ramp
        return weighting.WEIGHTINGS[self.weighting](logits, target, self.gamma * ramp, gamma2)

    def loss(self, nets: Sequence[Net], batch: Batch, progress: Progress) -> Loss:
        (net,) = nets
        assert batch.pseudo is not None, "a stage that learns from a store needs pseudo labels in its batch"
        images = torch.cat([batch.views[TRAIN], batch.images])  # (U + L, C, H, W), pseudo first
        pseudo = len(batch.views[TRAIN])
        ramp = ramps.gamma(progress.fraction) if self.ramp else 1.0

        if self.mixup is None:
            mix = None
            logits = net(images)
            reading = logits.detach()
        else:
            rng = progress.stream("mixup")
            mix = mixing.draw(len(images), self.mixup, rng, dominant=True, device=images.device)
            # the whole batch is looked at, so that BatchNorm sees the same mixture of samples as in training
            peek = {"update_statistics": self.double_statistics}
            reading = net.peek(images, **peek) if self._peeks else images.new_zeros(len(images), 1)
            logits = net(mix.blend(images))

        labels, weights = self.weigh(reading[:pseudo], batch.pseudo, ramp)
        parts = self._cases(reading[:pseudo], batch.pseudo, weights)
        labels = torch.cat([labels, batch.truth])
        weights = torch.cat([weights, torch.ones_like(batch.truth, dtype=weights.dtype)])
        sites = _mixed_sites(logits, labels, weights, mix)
        count = losses.labeled_sites(labels).clamp_min(1.0)
        parts |= {"pseudo": sites[:pseudo].sum() / count, "labeled": sites[pseudo:].sum() / count}
        total = sites.sum() / count
        return Loss(total, {"gamma": self.gamma * ramp} | {name: _detached(part) for name, part in parts.items()})

    def _cases(self, reading: Tensor, target: Target, weights: Tensor) -> dict[str, Tensor | float]:
        """Shares of the three cases among pseudo-labeled sites, and their mean weight."""
        count = losses.labeled_sites(target.labels).clamp_min(1.0)
        parts: dict[str, Tensor | float] = {"weight": weights.sum() / count}
        if self._weighs:
            cases = weighting.opinion(reading, target).cases
            names = {"agree": weighting.AGREE, "negative": weighting.NEGATIVE, "positive": weighting.POSITIVE}
            parts |= {name: (cases == case).sum() / count for name, case in names.items()}
        return parts


def _mixed_sites(logits: Tensor, labels: Tensor, weights: Tensor, mix: mixing.Mix | None) -> Tensor:
    """w̃·[λ·CE(y) + (1 − λ)·CE(y_π)] at every site, or w·CE(y) without mixup."""
    if mix is None:
        return losses.per_site(logits, labels, weights)
    weights = mix.blend(weights)
    first = losses.per_site(logits, labels, weights)
    second = losses.per_site(logits, labels[mix.partners], weights)
    return mix.coefficient * first + (1.0 - mix.coefficient) * second


def _detached(part: Tensor | float) -> Tensor | float:
    return part.detach() if isinstance(part, Tensor) else part


JOURNAL_PARTS: Mapping[str, str] = {
    "labeled": "loss on labels",
    "pseudo": "loss on pseudo labels",
    "weight": "mean weight of pseudo labels",
    "agree": "share of case 1, both nets agree",
    "negative": "share of case 2, disagreement the teacher wins",
    "positive": "share of case 3, disagreement the student wins, weight 0",
    "gamma": "γ1 now",
}
