"""An earlier stage teaches, through the pseudo labels it stored: CL, CBST, DST and DMT in all its variants."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from dmt.core import losses, mixing, ramps, recall, trees, weighting
from dmt.core.mixing import Mix
from dmt.core.weighting import Opinion
from dmt.objectives.base import Cast, Cost, Loss, Objective, Progress, detached
from dmt.options import neutral
from dmt.types import IGNORE, STRONG, TRAIN, WEAK, Batch, BatchShape, Sizes, Target


@dataclass(frozen=True)
class Stored(Objective):
    """Labels and weighted pseudo labels over one normalizer: L = L_X + L_U (docs/decisions, 3 to 5).

    With mixup the weights come from a look at the un-mixed batch, and are mixed like the images; a sample's mixed
    weight scales both of its label terms. Without mixup they come from the training forward itself, unless the student
    is asked in another view (the last) than it learns from (the first).

    Attributes:
        weighting: a name of `core.weighting.WEIGHTINGS`. "uniform" has no weight pass.
        gamma: γ1 at the end of its ramp.
        gamma2: γ2, likewise; γ1 if None.
        ramp: let γ grow over the stage; constant otherwise.
        mixup: α of λ ~ Beta(α, α), λ ← max(λ, 1 − λ); None for no mixup.
        double_statistics: let the weight pass update BatchNorm's running statistics too, as the reference did.
        weight_every: k, to look at one in k images and remember what the student thought of the others
            (docs/decisions, 30); 1 looks at all.
        class_weights: how much a site counts by the class it learns, beside its weight; all alike if there are none.
            Not with mixup.
        soft: learn all stored probabilities of an image; its label still decides how much they count.
    """

    views: ClassVar[tuple[str, ...]] = (TRAIN,)
    stored: ClassVar[bool] = True

    weighting: str
    gamma: float
    gamma2: float | None = None
    ramp: bool = True
    mixup: float | None = None
    double_statistics: bool = False
    weight_every: int = neutral(1)
    class_weights: tuple[float, ...] = neutral(())
    soft: bool = neutral(False)

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.images, self._part(shape.unlabeled) + self._part(shape.labeled) if self.looks else 0)

    @property
    def weighs(self) -> bool:
        """Whether labels count by what the student thinks of them."""
        return self.weighting != "uniform"

    @property
    def looks(self) -> bool:
        """Whether that takes a forward of its own."""
        return self.weighs and (self.mixup is not None or len(self.views) > 1)

    @property
    def remembers(self) -> bool:
        """Whether only a part of each batch is looked at."""
        return self.looks and self.weight_every > 1

    def _part(self, count: int) -> int:
        return -(-count // self.weight_every)

    def memory(self, sizes: Sizes, classes: int) -> Mapping[str, Tensor]:
        return recall.empty(sizes.unlabeled) if self.remembers else {}

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
        step = trees.send(np.array(progress.step), device) if self.remembers else None
        if self.mixup is None:
            return StoredDraw(ramp, None, step)
        rng = progress.stream("mixup")
        return StoredDraw(ramp, mixing.draw(shape.images, self.mixup, rng, dominant=True, device=device), step)

    def loss(self, cast: Cast, batch: Batch, draw: "StoredDraw") -> Loss:
        net = cast.net
        assert batch.pseudo is not None, "a stage that learns from a store needs pseudo labels in its batch"
        learned = batch.views[self.views[0]]
        images = torch.cat([learned, batch.images])  # (U + L, C, H, W), pseudo first
        pseudo, target = len(learned), batch.pseudo
        view: Opinion | None = None
        memory: Mapping[str, Tensor] = {}

        if self.looks:
            view, memory = self._look(cast, batch, target, draw.step)
        logits = net(images if draw.mix is None else draw.mix.blend(images))
        if self.weighs and view is None:
            view = weighting.opinion(logits[:pseudo], target)

        labels, weights = self._judge(view, target, draw.ramp)
        logged = {"gamma": self.gamma * draw.ramp, **_cases(view, target, weights)}
        labels = torch.cat([labels, batch.truth])
        weights = torch.cat([weights, torch.ones_like(batch.truth, dtype=weights.dtype)])
        if self.class_weights:
            weights = weights * losses.of_classes(labels, self.class_weights)
        if self.soft:
            sites = losses.per_mixed_soft_site(logits, _soft(labels, target, logits.shape[1]), weights, draw.mix)
        else:
            sites = losses.per_mixed_site(logits, labels, weights, draw.mix)
        count = losses.labeled_sites(labels).clamp_min(1.0)
        logged |= {"pseudo": sites[:pseudo].sum() / count, "labeled": sites[pseudo:].sum() / count}
        return Loss(sites.sum() / count, detached(**logged), memory)

    def _look(
        self, cast: Cast, batch: Batch, target: Target, step: Tensor | None
    ) -> tuple[Opinion, Mapping[str, Tensor]]:
        """What the student thinks of the pseudo-labeled images before the step, and what it will remember of that."""
        seen = batch.views[self.views[-1]]
        # labeled images are looked at too, so that BatchNorm sees the same mixture of samples as in training
        labeled = batch.images[: self._part(len(batch.images))]
        if not self.remembers:
            reading = cast.net.peek(torch.cat([seen, labeled]), update_statistics=self.double_statistics)
            return weighting.opinion(reading[: len(seen)], target), {}
        assert batch.positions is not None
        assert step is not None
        asked = recall.longest_ago(cast.memory, batch.positions, self._part(len(seen)))
        reading = cast.net.peek(torch.cat([seen[asked], labeled]), update_statistics=self.double_statistics)
        view = weighting.opinion(reading[: len(asked)], Target(target.labels[asked], target.confidence[asked]))
        memory = recall.updated(cast.memory, batch.positions[asked], view, step)
        return recall.recall(memory, batch.positions, target), memory


@dataclass(frozen=True)
class StoredStrong(Stored):
    """The same with pseudo-labeled images in strong views; labeled ones are seen as before. Ours."""

    views: ClassVar[tuple[str, ...]] = (STRONG,)


@dataclass(frozen=True)
class StoredAskedWeak(Stored):
    """The same with weights from a look at weak views. Ours."""

    views: ClassVar[tuple[str, ...]] = (TRAIN, WEAK)


@dataclass(frozen=True)
class StoredStrongAskedWeak(Stored):
    """Pseudo-labeled images in strong views, with weights from a look at weak ones. Ours."""

    views: ClassVar[tuple[str, ...]] = (STRONG, WEAK)


def _soft(labels: Tensor, target: Target, classes: int) -> Tensor:
    """(U + L, C): the stored probabilities where their label is learned, else all for the label; 0 without one."""
    assert target.soft is not None, "soft labels must be stored"
    hard = F.one_hot(labels.clamp_min(0), classes).float() * (labels != IGNORE)[:, None]
    kept = labels[: len(target.labels)] == target.labels
    return torch.cat([torch.where(kept[:, None], target.soft, hard[: len(kept)]), hard[len(kept) :]])


def _cases(view: Opinion | None, target: Target, weights: Tensor) -> dict[str, Tensor]:
    """Mean weight of pseudo-labeled sites and, if the student was asked, the shares of the three cases."""
    count = losses.labeled_sites(target.labels).clamp_min(1.0)
    parts = {"weight": weights.sum() / count}
    if view is not None:
        parts |= {name: (view.cases == case).sum() / count for name, case in weighting.CASES.items()}
    return parts


class StoredDraw(NamedTuple):
    """What a step of `Stored` takes: where γ stands on its ramp, what is mixed with what, and the step's number."""

    ramp: Tensor  # 0-d
    mix: Mix | None
    step: Tensor | None = None  # 0-d int64, where the student remembers
