"""Auxiliary modules that are trained together with the nets of a stage, or added to them for that stage only."""

from collections.abc import Mapping
from functools import partial

import torch
from torch import nn

from dmt.core import streams
from dmt.methods.plan import Stage
from dmt.models import build, embedding
from dmt.models.build import NetSpec, Normalized
from dmt.objectives.base import Objective, Part
from dmt.tasks.base import Task
from dmt.training.trainer import Training


def training(stage: Stage, nets: Mapping[str, nn.Module], spec: NetSpec, task: Task, steps: int, seed: int) -> Training:
    """Return what a stage trains besides its nets, and how; class filters are added to the nets.

    Args:
        nets: the nets of the stage by line, with their initial parameters.
        spec: the specification that the first of them was built from.
        steps: number of steps.
        seed: the seed of everything random in the stage.
    """
    add_class_filters(stage.objective, nets, spec, seed)
    modules = parts(stage.objective, nets[stage.lines[0]], spec, seed)
    memory = stage.objective.memory(task.sizes(0), len(task.classes))
    return Training(stage.objective, stage.schedule, steps, seed, modules, memory, partial(task.clean_images, seed))


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
