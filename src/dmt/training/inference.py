"""Nets at work: predictions, scores and pseudo labels, always in eval mode and float32."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from dmt.data.sets import LabeledSet, UnlabeledSet
from dmt.tasks.base import Task
from dmt.types import Target

SIZE = 500
"""Images per forward."""


@dataclass(frozen=True)
class Score:
    """A net on a set of images with truth; percentages."""

    accuracy: float
    fine_grained: float
    count: int
    per_class: list[float]
    confusion: list[list[int]]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@torch.no_grad()
def logits(
    net: nn.Module, task: Task, images: UnlabeledSet | LabeledSet, device: torch.device
) -> Iterator[tuple[slice, Tensor]]:
    """Float32 logits of all images in order; the net's mode is put back."""
    training = net.training
    net.eval()
    try:
        for part, batch in task.views(images, device, SIZE):
            yield part, net(batch).float()
    finally:
        net.train(training)


def score(net: nn.Module, task: Task, images: LabeledSet, device: torch.device) -> Score:
    """Measure a net against truth."""
    meter = task.meter(device)
    for part, output in logits(net, task, images, device):
        meter.add(output, images.labels[part].to(device))
    return Score(
        accuracy=meter.accuracy(),
        fine_grained=meter.fine_grained(),
        count=meter.count,
        per_class=meter.per_class(),
        confusion=meter.matrix.tolist(),
    )


def label(net: nn.Module, task: Task, images: UnlabeledSet, device: torch.device) -> Target:
    """The net's label of every image and its confidence, on the host."""
    parts = [output.softmax(1).max(1) for _, output in logits(net, task, images, device)]
    labels = torch.cat([each.indices for each in parts]).cpu()
    return Target(labels, torch.cat([each.values for each in parts]).cpu())
