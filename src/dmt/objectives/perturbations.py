"""How features are perturbed before CCT's auxiliary decoders see them: seven kinds, by name."""

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
"""Kinds that get a third of the decoders: nothing, or little, about them is random."""

SALIENT_FROM, SALIENT_TO = 0.7, 0.9
"""Places above such a share of the largest mean activation are dropped."""

LOUDEST = 0.3
"""Features are multiplied by 1 ± this at most."""

ERASED = 0.4
"""Share of both sides of an object's box that is cut out."""

RADIUS = 2.0
"""Of adversarial noise, over all features of an image."""

TINY = 1e-8


class Seeds(NamedTuple):
    """Of one decoder of each kind."""

    channels: Tensor  # (N,) int64
    salient: Tensor  # (N,)
    cutout: Tensor  # (N,)
    noise: Tensor  # 0-d: one map serves the whole batch
    adversarial: Tensor  # 0-d, likewise of where the search for a direction begins


class Clean(NamedTuple):
    """What there is to perturb."""

    features: Tensor  # (N, F, h, w)
    objects: Tensor  # (N, h, w) bool, where the main decoder sees something
    valid: Tensor | None  # (N, H, W) bool, of pixels


def perturb(kind: str, clean: Clean, seeds: Seeds, decoder: Callable[[Tensor], Tensor]) -> Tensor:
    """Features as a decoder of a kind sees them.

    Args:
        decoder: features to logits (N, C, H, W), without gradient to its parameters.
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
    return features * (clean.objects if kind == CONTEXT else ~clean.objects)[:, None]  # what is masked is gone


def objects_in(labels: Tensor, background: int, size: tuple[int, int]) -> Tensor:
    """Where labels (N, H, W) are of another class than the background, on a grid of features, (N, h, w) bool."""
    return F.interpolate((labels != background).float()[:, None], size=size)[:, 0] > 0.5


def _quiet(features: Tensor, chance: Tensor) -> Tensor:
    """Where the mean activation is below a random share of its largest, (N, 1, h, w); ``chance`` is (N, 1)."""
    activation = features.detach().mean(1)
    share = SALIENT_FROM + (SALIENT_TO - SALIENT_FROM) * chance
    limit = activation.flatten(1).amax(1, keepdim=True) * share  # (N, 1)
    return (activation < limit[:, :, None]).float()[:, None]


def _map(features: Tensor, seed: Tensor) -> Tensor:
    """From −½ to ½, one for every feature of an image, (F, h, w)."""
    return noise.uniform(seed, features[0].numel()).view(features.shape[1:]) - 0.5


def worst(
    features: Tensor, direction: Tensor, decoder: Callable[[Tensor], Tensor], valid: Tensor | None = None
) -> Tensor:
    """Noise of norm `RADIUS` that changes probabilities the most, by one step of the power method (Miyato et al. 2018).

    As published, it lies along the gradient of KL(p(h) ‖ p(h + ξd)) with respect to ξd, d a random direction of
    length 1 and ξ = 10⁻⁶. Spread over all features of an image, so short a probe is lost in the rounding of float32,
    let alone bfloat16: the gradient is noise. For small ξ it is ξ·Jᵀ(diag p − ppᵀ)Jd: this is computed, without a ξ.

    Args:
        features: (N, F, h, w), float32.
        direction: d, (F, h, w), of any length.
        decoder: to logits (N, C, H, W).
        valid: (N, H, W), pixels that count.
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
    """J·d, how outputs change where inputs go in a direction; Jᵀ·v is linear in v, so d's share of it has slope J·d."""
    anything = torch.zeros_like(outputs, requires_grad=True)
    (back,) = torch.autograd.grad(outputs, inputs, anything, create_graph=True)
    return torch.autograd.grad(back, anything, direction, retain_graph=True)[0]
