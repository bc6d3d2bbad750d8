"""Auxiliary modules that are trained together with the nets of a stage, or added to them for that stage only."""

from collections.abc import Mapping

import torch
from torch import nn

from dmt.core import streams
from dmt.models import build, embedding
from dmt.models.build import NetSpec, Normalized
from dmt.objectives.base import Objective, Part


def parts(objective: Objective, net: nn.Module, spec: NetSpec, seed: int) -> Mapping[str, Part]:
    """Build the objective's auxiliary modules, by name; their initial parameters depend only on the seed.

    Args:
        net: the first net of the stage.
        spec: the specification that it was built from.
        seed: the seed of everything random in the stage.
    """
    channels = embedding.width(net, spec.shape) if objective.embeds else spec.shape[0]
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(streams.seed_of(seed, "parts"))
        found = dict(objective.parts(channels, spec.classes))
        if objective.features:
            found |= objective.parts_on(build.feature_maps(net, spec), spec.classes)
    return found


def add_class_filters(objective: Objective, nets: Mapping[str, nn.Module], spec: NetSpec, seed: int) -> None:
    """Add a classifier of which classes an image contains to each net, if the objective needs one.

    Args:
        nets: the nets of the stage by line, with their initial parameters.
        spec: the specification that they were built from.
        seed: the seed of everything random in the stage.
    """
    if objective.class_threshold is None:
        return
    for line, net in nets.items():
        width = build.feature_maps(net, spec)[-1].width
        assert isinstance(net, Normalized)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(streams.seed_of(seed, "class filter", line))
            net.add_class_filter(width, spec.classes, objective.class_threshold)
