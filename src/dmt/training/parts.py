"""What is trained beside the nets of a stage."""

from collections.abc import Mapping

import torch
from torch import nn

from dmt.models import build
from dmt.models.build import NetSpec
from dmt.objectives.base import Objective, Part


def fresh(objective: Objective, nets: Mapping[str, nn.Module], spec: NetSpec, seed: int) -> dict[str, Part]:
    """The modules that an objective asks for, by name; their parameters depend on the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        found = dict(objective.parts(spec.shape[0], spec.classes))
        if objective.features:
            maps = [build.feature_maps(net, spec) for net in nets.values()]
            found |= objective.parts_on(maps[0], spec.classes)
    return found
