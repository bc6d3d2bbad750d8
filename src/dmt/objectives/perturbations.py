"""The seven kinds of feature perturbations for CCT's auxiliary decoders, by name."""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from dmt.core import noise, regions
from dmt.objectives.perturbed import channel_masks

CHANNELS, SALIENT, NOISE, CUTOUT = "channels", "salient", "noise", "cutout"
CONTEXT, OBJECTS, ADVERSARIAL = "context", "objects", "adversarial"
KINDS = (CHANNELS, SALIENT, NOISE, CUTOUT, CONTEXT, OBJECTS, ADVERSARIAL)
FEWER = (CONTEXT, OBJECTS, ADVERSARIAL)
"""Kinds with a third of the decoders, since they involve little or no randomness."""

SALIENT_FROM, SALIENT_TO = 0.7, 0.9
"""Range of a random share of the largest mean activation; positions with a larger activation are dropped."""

LOUDEST = 0.3
"""Largest relative noise: features are multiplied by a factor within 1 ± this."""

ERASED = 0.4
"""Height and width of a cutout as a share of those of an object's bounding box."""

RADIUS = 2.0
"""L2 norm of adversarial noise over all features of an image."""

TINY = 1e-8


class Seeds(NamedTuple):
    """Random seeds for one decoder of each kind, all int64."""

    channels: Tensor  # (N,)
    salient: Tensor  # (N,)
    cutout: Tensor  # (N,)
    noise: Tensor  # 0-d: the whole batch shares one noise map
    adversarial: Tensor  # 0-d: it also shares one initial direction of adversarial noise


class Clean(NamedTuple):
    """Unperturbed features, and what perturbations need to know about them."""

    features: Tensor  # (N, F, h, w)
    objects: Tensor  # (N, h, w) bool, where the main decoder predicts another class than the background
    valid: Tensor | None  # (N, H, W) bool, pixels inside of the image; None for all


def perturb(kind: str, clean: Clean, seeds: Seeds, decoder: Callable[[Tensor], Tensor]) -> Tensor:
    """Return perturbed features (N, F, h, w).

    Args:
        kind: one of `KINDS`.
        clean: the features to perturb.
        seeds: random seeds.
        decoder: from features to logits (N, C, H, W), without gradient to its parameters; for adversarial noise.
    """
    features = clean.features
    if kind == CHANNELS:
        return features * channel_masks((features,), seeds.channels)[0]
    if kind == SALIENT:
        return features * _quiet(features, noise.uniform(seeds.salient, 1))
    if kind == NOISE:
        return features * (1.0 + 2.0 * LOUDEST * _map(features, seeds.noise))
    if kind == CUTOUT:
        cut = regions.box_parts(regions.connected(clean.objects), ERASED, seeds.cutout)
        return features * ~cut[:, None]
    if kind == ADVERSARIAL:
        return features + worst(features.detach(), _map(features, seeds.adversarial), decoder, clean.valid)
    # context masking keeps only objects, object masking only the background
    return features * (clean.objects if kind == CONTEXT else ~clean.objects)[:, None]


def objects_in(labels: Tensor, background: int, size: tuple[int, int]) -> Tensor:
    """Return where labels (N, H, W) are not background, at the resolution of the features, (N, h, w) bool."""
    return F.interpolate((labels != background).float()[:, None], size=size)[:, 0] > 0.5


def _quiet(features: Tensor, chance: Tensor) -> Tensor:
    """Return a mask (N, 1, h, w) of positions whose mean activation is below a random share of the largest one.

    Args:
        features: (N, F, h, w).
        chance: (N, 1), uniform random numbers in [0, 1) for that share.
    """
    activation = features.detach().mean(1)
    share = SALIENT_FROM + (SALIENT_TO - SALIENT_FROM) * chance
    limit = activation.flatten(1).amax(1, keepdim=True) * share  # (N, 1)
    return (activation < limit[:, :, None]).float()[:, None]


def _map(features: Tensor, seed: Tensor) -> Tensor:
    """Return uniform noise from −½ to ½ in the shape of an image's features, (F, h, w)."""
    return noise.uniform(seed, features[0].numel()).view(features.shape[1:]) - 0.5


def worst(
    features: Tensor, direction: Tensor, decoder: Callable[[Tensor], Tensor], valid: Tensor | None = None
) -> Tensor:
    """Return noise of norm `RADIUS` that changes probabilities most, by one power iteration (Miyato et al. 2018).

    As published, its direction is the gradient of KL(p(h) ‖ p(h + ξd)) with respect to ξd, where d is a random unit
    vector and ξ = 10⁻⁶. Spread over all features of an image, so small a perturbation is lost in the rounding of
    float32, let alone bfloat16, and the gradient is meaningless. For small ξ the gradient is ξ·Jᵀ(diag p − ppᵀ)Jd, with
    the Jacobian J of the logits. This is computed here, without the factor ξ.

    Args:
        features: h, (N, F, h, w), float32.
        direction: d, (F, h, w), of any length.
        decoder: from features to logits (N, C, H, W).
        valid: (N, H, W) bool, pixels that count; None for all.
    """
    still = features.detach().requires_grad_()
    logits = decoder(still)
    probabilities, changed = logits.detach().softmax(1), _along(logits, still, direction.expand_as(still))
    change = probabilities * (changed - (probabilities * changed).sum(1, keepdim=True))
    if valid is not None:
        change = change * valid[:, None]
    found = torch.autograd.grad(logits, still, change)[0]
    length = found.square().sum((1, 2, 3), keepdim=True).sqrt()
    return RADIUS * found / (length + TINY)


def _along(outputs: Tensor, inputs: Tensor, direction: Tensor) -> Tensor:
    """Return the directional derivative J·d by two backward passes: Jᵀv is linear in v, so ∂(d·Jᵀv)/∂v = J·d."""
    anything = torch.zeros_like(outputs, requires_grad=True)
    (back,) = torch.autograd.grad(outputs, inputs, anything, create_graph=True)
    return torch.autograd.grad(back, anything, direction, retain_graph=True)[0]
