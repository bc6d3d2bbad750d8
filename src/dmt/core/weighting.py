"""Loss weights of pseudo labels: the core of Dynamic Mutual Training.

Every weighting takes the student's logits and the stored target and returns ``(labels, weights)``: labels too, because
DMT-Flip changes them. Everything here is without gradient, in float32, and the same for images and pixels. Tensors of
shapes that do not fit raise an error, as do labels that are no class and confidences that are no probability.

``gamma`` may be a number or a 0-d tensor. To switch the weighting off, use `uniform`, not ``gamma=0``: with γ = 0, the
third case of Eq. 6 still has weight 0.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from dmt.core import shapes
from dmt.types import IGNORE, Target

Gamma = float | Tensor
Weighted = tuple[Tensor, Tensor]
Weighting = Callable[[Tensor, Target, Gamma, Gamma | None], Weighted]

AGREE, NEGATIVE, POSITIVE = 0, 1, 2
"""The cases of Eq. 6: teacher and student agree; they disagree and the student is not more confident than the teacher;
they disagree and the student is more confident."""

CASES = {"agree": AGREE, "negative": NEGATIVE, "positive": POSITIVE}
"""The cases by their names in journals and audits."""


class Opinion(NamedTuple):
    """The student's predictions compared with the teacher's labels. Every field is (N, *S)."""

    labels: Tensor  # y_B, the student's own label
    confidence: Tensor  # c_B, the student's probability of its own label
    probability: Tensor  # p_B, the student's probability of the teacher's label y_A
    cases: Tensor  # AGREE, NEGATIVE or POSITIVE; IGNORE where the teacher gave no label


@torch.no_grad()
def opinion(logits: Tensor, target: Target) -> Opinion:
    """Compare the student's prediction with the teacher's label at every site.

    Args:
        logits: (N, C, *S), any float type.
        target: the teacher's labels and confidence, (N, *S).
    """
    shapes.require_target(logits, target)
    probabilities = logits.float().softmax(1)
    confidence, labels = probabilities.max(1)
    # IGNORE cannot be an index: look up class 0 there; every rule masks these sites
    index = target.labels.clamp_min(0).unsqueeze(1)
    probability = probabilities.gather(1, index).squeeze(1)
    return Opinion(labels, confidence, probability, cases_of(labels, confidence, target))


def cases_of(labels: Tensor, confidence: Tensor, target: Target) -> Tensor:
    """Return the cases of Eq. 6 from the student's labels and confidence; ``IGNORE`` where there is no target."""
    disagree = torch.where(confidence > target.confidence, POSITIVE, NEGATIVE)  # strict: a tie is NEGATIVE
    return torch.where(labels == target.labels, AGREE, disagree).where(target.labels != IGNORE, IGNORE)


def uniform(logits: Tensor | None, target: Target, gamma: Gamma = 0.0, gamma2: Gamma | None = None) -> Weighted:
    """Give every labeled site weight 1 (Curriculum Labeling, CBST); values of logits and gamma are not used."""
    shapes.require_labels(target.labels, logits)
    return target.labels, (target.labels != IGNORE).float()


def dynamic(logits: Tensor, target: Target, gamma: Gamma, gamma2: Gamma | None = None) -> Weighted:
    """DMT's dynamic weight, Eq. 6: p_B^γ1 on agreement; on disagreement p_B^γ2, or 0 if the student is more confident.

    Args:
        logits: (N, C, *S), the student's.
        target: the teacher's labels and confidence.
        gamma: γ1, for sites where both nets agree.
        gamma2: γ2, for disagreement where the student is not more confident than the teacher; γ1 if not given.
    """
    return _weigh("dynamic", logits, target, gamma, gamma2)


def naive(logits: Tensor, target: Target, gamma: Gamma, gamma2: Gamma | None = None) -> Weighted:
    """DMT-Naive: weight p_B^γ at every labeled site, without distinguishing cases."""
    return _weigh("naive", logits, target, gamma, gamma2)


def flip(logits: Tensor, target: Target, gamma: Gamma, gamma2: Gamma | None = None) -> Weighted:
    """DMT-Flip: like `dynamic`, but a student that is more confident learns its own label, with weight (1 − c_A)^γ2."""
    return _weigh("flip", logits, target, gamma, gamma2)


def _weigh(name: str, logits: Tensor, target: Target, gamma: Gamma, gamma2: Gamma | None) -> Weighted:
    shapes.require_values(logits, target)
    return judge(name, opinion(logits, target), target, gamma, gamma2)


@torch.no_grad()
def judge(name: str, view: Opinion, target: Target, gamma: Gamma, gamma2: Gamma | None = None) -> Weighted:
    """Apply the weighting of this name, but not "uniform", to an opinion already computed, which saves a softmax."""
    shapes.require_alike("an opinion", view.cases, target.labels)
    shapes.require_exponent("gamma", gamma)
    shapes.require_exponent("gamma2", gamma2)
    return _RULES[name](view, target, gamma, gamma if gamma2 is None else gamma2)


def _dynamic(view: Opinion, target: Target, gamma: Gamma, gamma2: Gamma) -> Weighted:
    weights = torch.where(view.cases == AGREE, view.probability**gamma, view.probability**gamma2)
    keep = (view.cases == AGREE) | (view.cases == NEGATIVE)
    return target.labels, weights.where(keep, 0.0)


def _naive(view: Opinion, target: Target, gamma: Gamma, gamma2: Gamma) -> Weighted:
    return target.labels, (view.probability**gamma).where(view.cases != IGNORE, 0.0)


def _flip(view: Opinion, target: Target, gamma: Gamma, gamma2: Gamma) -> Weighted:
    labels, weights = _dynamic(view, target, gamma, gamma2)
    positive = view.cases == POSITIVE
    doubt = (1.0 - target.confidence.float()) ** gamma2
    return torch.where(positive, view.labels, labels), torch.where(positive, doubt, weights)


_RULES: dict[str, Callable[[Opinion, Target, Gamma, Gamma], Weighted]] = {
    "dynamic": _dynamic,
    "naive": _naive,
    "flip": _flip,
}
WEIGHTINGS: dict[str, Weighting] = {"uniform": uniform, "dynamic": dynamic, "naive": naive, "flip": flip}
