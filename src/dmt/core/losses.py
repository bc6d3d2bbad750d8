"""Weighted cross-entropy over sites, with the same normalizer for images and pixels, and related losses.

Tensors of shapes that do not fit are rejected: broadcasting them would silently give a wrong loss.
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from dmt.core import shapes
from dmt.core.mixing import Mix
from dmt.types import IGNORE

HARD = 0.7
"""In hard example mining, a site is hard if the net gives its label at most this probability."""


def labeled_sites(*labels: Tensor) -> Tensor:
    """Return the number of labeled sites in all given tensors, the N of Eq. 7, as a 0-d float tensor.

    Sites of weight 0 count too. For a fully labeled batch of images, this is the batch size.
    """
    counts = [(each != IGNORE).sum() for each in labels]
    return sum(counts[1:], counts[0]).float()


def per_site(logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """Return w·CE at every site, (N, *S) float32; 0 where there is no label.

    Args:
        logits: (N, C, *S), any float type.
        labels: (N, *S) int64, ``IGNORE`` where there is none.
        weights: (N, *S), 1 if not given.
    """
    shapes.require_labels(labels, logits)
    if weights is not None:
        shapes.require_sites("weights", weights, labels)
    losses = F.cross_entropy(logits.float(), labels, ignore_index=IGNORE, reduction="none")
    return losses if weights is None else losses * weights


def of_classes(labels: Tensor, by_class: Sequence[float]) -> Tensor:
    """Return the class weight of every site, (N, *S) float32; 0 where there is no label."""
    # a sum over classes instead of a lookup: a CUDA graph cannot capture creating the tensor to look up in
    found = torch.zeros_like(labels, dtype=torch.float32)
    for label, weight in enumerate(by_class):
        found = found + weight * (labels == label)
    return found


def mean_over_labeled(sites: Tensor, labels: Tensor) -> Tensor:
    """Return the sum over all sites divided by the number of labeled ones, 0-d; 0, not NaN, if nothing is labeled."""
    shapes.require_alike("sites", sites, labels)
    return sites.sum() / labeled_sites(labels).clamp_min(1.0)


def mean_over_hard(sites: Tensor, labels: Tensor, share: float) -> Tensor:
    """Online hard example mining: return the mean loss over the labeled sites with p(label) ≤ `HARD`.

    If these are fewer than ``share`` of all sites, the mean is over that share of sites with the largest loss instead,
    as far as they are labeled.

    Args:
        sites: (N, *S), −log p(label); 0 without a label.
        labels: (N, *S), ``IGNORE`` where there is none.
        share: smallest share of all sites to keep, in (0, 1].
    """
    shapes.require_alike("sites", sites, labels)
    hardest = sites.detach().flatten().topk(math.ceil(share * sites.numel())).values[-1]
    kept = (sites.detach() >= hardest.clamp_max(-math.log(HARD))) & (labels != IGNORE)
    return (sites * kept).sum() / kept.sum().clamp_min(1)


def mean_over(sites: Tensor, valid: Tensor | None) -> Tensor:
    """Return the mean over all sites or over the ``valid`` ones, (N, *S) bool; sites of weight 0 count too."""
    if valid is None:
        return sites.mean()
    shapes.require_alike("valid", valid, sites)
    return (sites * valid).sum() / valid.sum().clamp_min(1)


def soft_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Return −Σ_c q_c·log p_c at every site, (N, *S) float32.

    Args:
        logits: (N, C, *S), any float type.
        targets: (N, C, *S), probabilities q; they are detached.
    """
    shapes.require_logits(logits)
    shapes.require_alike("targets", targets, logits)
    return -(targets.detach() * logits.float().log_softmax(1)).sum(1)


def divergence(logits: Tensor, targets: Tensor) -> Tensor:
    """Return KL(q ‖ p) at every site, (N, *S): `soft_cross_entropy` minus the entropy of the targets."""
    shapes.require_alike("targets", targets, logits)
    entropy: Tensor = -torch.special.xlogy(targets, targets).sum(1)
    return soft_cross_entropy(logits, targets) - entropy.detach()


def squared(values: Tensor, targets: Tensor, *, summed: bool = False) -> Tensor:
    """Return Σ_c (v_c − q_c)² at every site, (N, *S), divided by the number of classes unless ``summed``."""
    shapes.require_alike("targets", targets, values)
    squares = (values.float() - targets.detach().float()) ** 2
    return squares.sum(1) if summed else squares.mean(1)


def per_mixed_site(logits: Tensor, labels: Tensor, weights: Tensor | None, mix: Mix | None) -> Tensor:
    """Return w̃·[λ·CE(y) + (1 − λ)·CE(y_π)] at every site, (N, *S); without a mix, w·CE(y).

    A sample's mixed weight w̃ scales both terms, that of its own label and that of its partner's (docs/decisions, 5).
    """
    if mix is None:
        return per_site(logits, labels, weights)
    shapes.require_scalar("the coefficient of a mix", mix.coefficient)
    shapes.require_shape("the partners of a mix", mix.partners, tuple(labels.shape[:1]))
    weights = None if weights is None else mix.blend(weights)
    first, second = (per_site(logits, each, weights) for each in (labels, labels[mix.partners]))
    return mix.coefficient * first + (1.0 - mix.coefficient) * second


def per_mixed_soft_site(logits: Tensor, targets: Tensor, weights: Tensor, mix: Mix | None) -> Tensor:
    """Return the same for soft targets (N, C): w̃·[λ·CE(q) + (1 − λ)·CE(q_π)], which equals w̃·CE(λq + (1 − λ)q_π)."""
    shapes.require_alike("weights", weights, logits[:, 0])
    if mix is not None:
        targets, weights = mix.blend(targets), mix.blend(weights)
    return soft_cross_entropy(logits, targets) * weights


def cross_entropy(
    logits: Tensor, labels: Tensor, weights: Tensor | None = None, count: Tensor | float | None = None
) -> Tensor:
    """Return Σ w·CE / count, a 0-d tensor; 0, not NaN, if nothing is labeled.

    Args:
        logits: (N, C, *S).
        labels: (N, *S) int64, ``IGNORE`` where there is no label.
        weights: (N, *S), 1 if not given.
        count: number of labeled sites in the *whole* batch [pseudo; labeled], so that L = L_X + L_U with the same N.
            Counted from ``labels`` if not given.
    """
    shapes.require_scalar("count", count)
    total = per_site(logits, labels, weights).sum()
    if count is None:
        count = labeled_sites(labels)
    return total / (count.clamp_min(1.0) if isinstance(count, Tensor) else max(count, 1.0))
