"""What is trained beside the nets of a stage."""

from collections.abc import Mapping

import torch
from torch import nn

from dmt.core import streams
from dmt.models import build, embedding
from dmt.models.build import NetSpec
from dmt.objectives.base import Objective, Part


def parts(objective: Objective, net: nn.Module, spec: NetSpec, seed: int) -> Mapping[str, Part]:
    """Fresh parts, whose parameters depend on the seed alone.

    Args:
        net: the first of the stage.
        spec: what it was built from.
        seed: of everything random in the stage.
    """
    channels = embedding.width(net, spec.shape) if objective.embeds else spec.shape[0]
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(streams.seed_of(seed, "parts"))
        found = dict(objective.parts(channels, spec.classes))
        if objective.features:
            found |= objective.parts_on(build.feature_maps(net, spec), spec.classes)
    return found
