"""What is trained beside the nets of a stage, or inside them for it alone."""

from collections.abc import Mapping

import torch
from torch import nn

from dmt.core import streams
from dmt.models import build, embedding
from dmt.models.build import NetSpec, Normalized
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


def add_class_filters(objective: Objective, nets: Mapping[str, nn.Module], spec: NetSpec, seed: int) -> None:
    """Give nets what tells the classes of an image, if the objective asks for that.

    Args:
        nets: of the stage, with the parameters that they start from.
        spec: what they were built from.
        seed: of everything random in the stage.
    """
    if objective.class_threshold is None:
        return
    for line, net in nets.items():
        width = build.feature_maps(net, spec)[-1].width
        assert isinstance(net, Normalized)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(streams.seed_of(seed, "class filter", line))
            net.add_class_filter(width, spec.classes, objective.class_threshold)
