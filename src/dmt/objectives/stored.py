"""An earlier stage is the teacher, through stored pseudo labels: CL, CBST, DST and all variants of DMT."""

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
    """Cross-entropy with labels and weighted pseudo labels, one normalizer: L = L_X + L_U (docs/decisions, 3 to 5).

    With mixup, the weights come from a separate forward without gradient over the unmixed batch, the weight pass, and
    are mixed like the images; a sample's mixed weight scales both of its label terms. Without mixup, the weights come
    from the training forward itself. Subclasses may have two views: one to train on (the first) and one for the weight
    pass (the last).

    Attributes:
        weighting: a key of `core.weighting.WEIGHTINGS`; "uniform" needs no weight pass.
        gamma: γ1 at the end of its ramp.
        gamma2: γ2 at the end of its ramp; None for γ1.
        ramp: whether γ grows over the stage; otherwise it is constant.
        mixup: α of λ ~ Beta(α, α), replaced by max(λ, 1 − λ); None for no mixup.
        double_statistics: let the weight pass update BatchNorm's running statistics too, as the reference did.
        weight_every: k, to predict one in k images in the weight pass and use stored predictions for the others
            (docs/decisions, 30); 1 for all images.
        class_weights: factor of a site's weight by its class, one per class; empty for equal weights. Not with mixup.
        soft: use all stored probabilities of an image as a soft target; its weight still depends on its hard label.
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
        """Whether weights depend on the student's predictions."""
        return self.weighting != "uniform"

    @property
    def looks(self) -> bool:
        """Whether the weights need a forward of their own (the weight pass)."""
        return self.weighs and (self.mixup is not None or len(self.views) > 1)

    @property
    def remembers(self) -> bool:
        """Whether the weight pass predicts only a part of each batch and uses stored predictions for the rest."""
        return self.looks and self.weight_every > 1

    def _part(self, count: int) -> int:
        return -(-count // self.weight_every)

    def memory(self, sizes: Sizes, classes: int) -> Mapping[str, Tensor]:
        return recall.empty(sizes.unlabeled) if self.remembers else {}

    def weigh(self, logits: Tensor, target: Target) -> tuple[Tensor, Tensor, Tensor | None]:
        """Weight pseudo labels by a student's logits, with γ at the end of its ramp.

        Returns:
            Labels, weights and, if weights depend on the student, the cases of Eq. 6, else None; (N, *S) each.
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
        """Weight pass: return the student's opinions of the pseudo labels, and the memory for the next step."""
        seen = batch.views[self.views[-1]]
        # labeled images are included, so that BatchNorm sees the same mixture of samples as in training
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
    """`Stored` with strong views of pseudo-labeled images; labeled images are unchanged. Ours."""

    views: ClassVar[tuple[str, ...]] = (STRONG,)


@dataclass(frozen=True)
class StoredAskedWeak(Stored):
    """`Stored` with weights from predictions on weak views. Ours."""

    views: ClassVar[tuple[str, ...]] = (TRAIN, WEAK)


@dataclass(frozen=True)
class StoredStrongAskedWeak(Stored):
    """`Stored` with strong views of pseudo-labeled images, and weights from predictions on weak views. Ours."""

    views: ClassVar[tuple[str, ...]] = (STRONG, WEAK)


def _soft(labels: Tensor, target: Target, classes: int) -> Tensor:
    """Return soft targets (U + L, C): the stored probabilities, or one-hot labels where there are none.

    One-hot labels are used for labeled images, and where the weighting has replaced the stored label; rows are 0
    without a label.
    """
    assert target.soft is not None, "soft labels must be stored"
    hard = F.one_hot(labels.clamp_min(0), classes).float() * (labels != IGNORE)[:, None]
    kept = labels[: len(target.labels)] == target.labels
    return torch.cat([torch.where(kept[:, None], target.soft, hard[: len(kept)]), hard[len(kept) :]])


def _cases(view: Opinion | None, target: Target, weights: Tensor) -> dict[str, Tensor]:
    """Return the mean weight of pseudo-labeled sites and, if there are opinions, the shares of the three cases."""
    count = losses.labeled_sites(target.labels).clamp_min(1.0)
    parts = {"weight": weights.sum() / count}
    if view is not None:
        parts |= {name: (view.cases == case).sum() / count for name, case in weighting.CASES.items()}
    return parts


class StoredDraw(NamedTuple):
    """Random draws and schedule values of one `Stored` step."""

    ramp: Tensor  # 0-d, factor of γ
    mix: Mix | None
    step: Tensor | None = None  # 0-d int64, number of the step, where predictions are stored
