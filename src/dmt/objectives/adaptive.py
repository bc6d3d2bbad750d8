"""FixMatch with thresholds or weights that adapt to past predictions: FlexMatch, FreeMatch, SoftMatch.

In all of them, hard labels from weak views are the targets for strong views, in one joint forward. The labeled and the
unlabeled term are separate means over all of their images. The memory is float32 or integer in any precision of nets.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from dmt.core import losses, targets
from dmt.objectives.base import Cast, Cost, Loss, Objective, detached
from dmt.objectives.itself import joint, supervised, sure
from dmt.types import IGNORE, STRONG, WEAK, Batch, BatchShape, Sizes

SPREAD = 2.0
"""SoftMatch's weight falls like a Gaussian whose standard deviation is that of the confidence divided by this."""

SMALLEST = 1e-12
"""A class counts as predicted if its moving share of the predicted labels is larger than this."""


@dataclass(frozen=True)
class FlexMatch(Objective):
    """FixMatch with lower thresholds for classes that are learned slowly (Zhang et al. 2021).

    CE(x, y) + w·mean(1[max p(weak) ≥ τ·β_c/(2 − β_c)]·CE(strong, c)), where c = argmax p(weak).

    The memory holds, for each unlabeled image, the last class that was predicted for it with confidence τ or more, if
    any. With n_c images of class c, β_c = n_c / max(largest n, number of images without a class). So a class that is
    rarely predicted with confidence has a lower threshold, and at first every image is used. The labels of a step enter
    the memory after it.

    Attributes:
        threshold: τ, the threshold of a class that is learned well.
        weight: w.
    """

    views: ClassVar[tuple[str, ...]] = (WEAK, STRONG)
    labeled_view: ClassVar[str] = WEAK

    threshold: float = 0.95
    weight: float = 1.0

    def memory(self, sizes: Sizes, classes: int) -> Mapping[str, Tensor]:
        return {"given": torch.full((sizes.unlabeled,), IGNORE)}

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.labeled + 2 * shape.unlabeled)

    def loss(self, cast: Cast, batch: Batch, draw: None) -> Loss:
        weak, strong, known = joint(cast, batch)
        labeled = supervised(known, batch)
        confidence, labels = sure(weak)
        given = cast.memory["given"]
        kept = (confidence >= self.threshold * _eased(_learned(given, weak.shape[1]))[labels]).float()
        unlabeled = losses.per_site(strong, labels, kept).mean()
        assert batch.positions is not None
        given = _given(given, batch.positions, labels, confidence >= self.threshold)
        logged = detached(labeled=labeled, unlabeled=unlabeled, kept=kept.mean())
        return Loss(labeled + self.weight * unlabeled, logged, {"given": given})


@dataclass(frozen=True)
class FreeMatch(Objective):
    """FixMatch with thresholds that follow the net's confidence, and a fairness term (Wang et al. 2023).

    CE(x, y) + w·mean(1[max p(weak) ≥ τ·p̃_c/max p̃]·CE(strong, c)) + v·Σ_c a_c·log b_c, where c = argmax p(weak).

    The memory holds moving averages over weak views, all starting at 1/C: τ of the mean confidence, p̃ of the mean
    probabilities, h̃ of the histogram of predicted labels. They are updated before they are used. With the mean
    probabilities p̄ and the histogram h̄ of this step's strong views that are kept, a = p̃/h̃ and b = p̄/h̄, both
    normalized. Gradient flows through p̄ alone, and classes that are predicted for none of these views are left out.
    The sign of the fairness term is the published one.

    Attributes:
        weight: w.
        weight_fairness: v.
        memory_ema: decay of the moving averages.
    """

    views: ClassVar[tuple[str, ...]] = (WEAK, STRONG)
    labeled_view: ClassVar[str] = WEAK

    weight: float = 1.0
    weight_fairness: float = 0.01
    memory_ema: float = 0.999

    def memory(self, sizes: Sizes, classes: int) -> Mapping[str, Tensor]:
        even = torch.full((classes,), 1.0 / classes)
        return {"threshold": torch.tensor(1.0 / classes), "probabilities": even, "labels": even.clone()}

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.labeled + 2 * shape.unlabeled)

    def loss(self, cast: Cast, batch: Batch, draw: None) -> Loss:
        weak, strong, known = joint(cast, batch)
        labeled = supervised(known, batch)
        probabilities = weak.detach().softmax(1)
        confidence, labels = probabilities.max(1)
        seen = {
            "threshold": confidence.mean(),
            "probabilities": probabilities.mean(0),
            "labels": targets.one_hot(labels, weak.shape[1]).mean(0),
        }
        memory = {name: cast.memory[name].lerp(value, 1.0 - self.memory_ema) for name, value in seen.items()}
        limits = memory["threshold"] * memory["probabilities"] / memory["probabilities"].max()
        kept = (confidence >= limits[labels]).float()
        unlabeled = losses.per_site(strong, labels, kept).mean()
        fairness = _fairness(strong.softmax(1), kept, memory)
        logged = detached(
            labeled=labeled, unlabeled=unlabeled, fairness=fairness, kept=kept.mean(), threshold=memory["threshold"]
        )
        return Loss(labeled + self.weight * unlabeled + self.weight_fairness * fairness, logged, memory)


@dataclass(frozen=True)
class SoftMatch(Objective):
    """FixMatch with a weight that decreases with lower confidence, instead of a threshold (Chen et al. 2023).

    CE(x, y) + w·mean(exp(−min(c − μ, 0)²/(2σ²/4))·CE(strong, argmax p(weak))).

    c is the confidence after p(weak) has been aligned with a uniform distribution of classes; the label is that before
    alignment. The memory holds moving averages, which are updated before they are used: μ (starting at 1/C) and σ²
    (starting at 1, unbiased) of the confidence before alignment, as in the paper, and p̃ of the mean probabilities
    (starting with those of the first step), by which p(weak) is aligned.

    Attributes:
        weight: w.
        memory_ema: decay of the moving averages.
    """

    views: ClassVar[tuple[str, ...]] = (WEAK, STRONG)
    labeled_view: ClassVar[str] = WEAK

    weight: float = 1.0
    memory_ema: float = 0.999

    def memory(self, sizes: Sizes, classes: int) -> Mapping[str, Tensor]:
        nothing = torch.zeros(classes)
        return {"mean": torch.tensor(1.0 / classes), "variance": torch.tensor(1.0), "probabilities": nothing}

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(shape.labeled + 2 * shape.unlabeled)

    def loss(self, cast: Cast, batch: Batch, draw: None) -> Loss:
        weak, strong, known = joint(cast, batch)
        labeled = supervised(known, batch)
        probabilities = weak.detach().softmax(1)
        confidence, labels = probabilities.max(1)
        seen = {
            "mean": confidence.mean(),
            "variance": confidence.var(correction=min(1, len(confidence) - 1)),
            "probabilities": probabilities.mean(0),
        }
        memory = {name: cast.memory[name].lerp(value, 1.0 - self.memory_ema) for name, value in seen.items()}
        before = cast.memory["probabilities"]
        found = memory["probabilities"].where(before.sum() > 0, seen["probabilities"])
        memory["probabilities"] = found
        even = torch.full_like(found, 1.0 / len(found))
        below = (targets.aligned(probabilities, even, found).max(1).values - memory["mean"]).clamp_max(0.0)
        weights = torch.exp(-(below**2) * SPREAD**2 / (2.0 * memory["variance"]))
        unlabeled = losses.per_site(strong, labels, weights).mean()
        logged = detached(labeled=labeled, unlabeled=unlabeled, kept=weights.mean(), mean=memory["mean"])
        return Loss(labeled + self.weight * unlabeled, logged, memory)


def _learned(given: Tensor, classes: int) -> Tensor:
    """Return β, (C,): images per class over the largest of these counts and of the number of images without a class."""
    # torch.bincount would synchronize with the host
    counts = given.new_zeros(classes + 1).scatter_add(0, given + 1, torch.ones_like(given))
    return counts[1:] / counts.max()


def _eased(learned: Tensor) -> Tensor:
    """Return β/(2 − β), a convex function from 0 to 1."""
    return learned / (2.0 - learned)


def _given(given: Tensor, positions: Tensor, labels: Tensor, certain: Tensor) -> Tensor:
    """Return the memory updated with this step's certain labels; an image that occurs twice gets its last one."""
    places = torch.arange(1, len(positions) + 1, device=positions.device) * certain
    last = ((positions[:, None] == positions) * places).max(1)
    return given.index_copy(0, positions, labels[last.indices].where(last.values > 0, given[positions]))


def _fairness(found: Tensor, kept: Tensor, memory: Mapping[str, Tensor]) -> Tensor:
    """Return FreeMatch's fairness term Σ_c a_c·log b_c; 0 if nothing is kept."""
    count = kept.sum().clamp_min(1.0)
    mean = (found * kept[:, None]).sum(0) / count
    shares = (targets.one_hot(found.argmax(1), found.shape[1]) * kept[:, None]).sum(0) / count
    told = shares > 0
    # the moving share of a class that is never predicted decays to 0, and must not be divided by
    named = memory["labels"] > SMALLEST
    wanted = targets.normalized((memory["probabilities"] / memory["labels"].where(named, 1.0)).where(named, 0.0))
    given = targets.normalized((mean / shares.where(told, 1.0)).where(told, 0.0))
    return (wanted * given.where(told, 1.0).log()).sum()
