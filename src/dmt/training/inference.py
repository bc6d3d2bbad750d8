"""Nets at work: predictions and scores, always in eval mode, with float32 logits."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from dmt.data.sets import LabeledSet, UnlabeledSet
from dmt.tasks.base import Task, View
from dmt.types import Target


@dataclass(frozen=True)
class Score:
    """A net on a set of images with truth; percentages. The last three are of pixels only.

    Attributes:
        accuracy: share of right sites.
        fine_grained: the same, each right site counted as its probability.
        count: sites.
        per_class: recall of each class.
        confusion: rows truth, columns prediction.
        mean_iou: over the classes that occur.
        iou: of each class, NaN for those that do not.
        absent: classes without a single pixel of truth.
    """

    accuracy: float
    fine_grained: float
    count: int
    per_class: list[float]
    confusion: list[list[int]]
    mean_iou: float | None = None
    iou: list[float] | None = None
    absent: list[int] | None = None

    def as_json(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value is not None}


@torch.no_grad()
def logits(
    net: nn.Module, task: Task, images: UnlabeledSet[Any] | LabeledSet[Any], device: torch.device
) -> Iterator[tuple[View, Tensor]]:
    """Float32 logits of all images, each once; the net's mode is put back."""
    training = net.training
    net.eval()
    # pixels are many: convolutions in bf16 there, as in training; the nets compute their last layer in float32
    half = task.pixels and device.type == "cuda"
    try:
        for view in task.views(images, device):
            with torch.autocast(device.type, torch.bfloat16, enabled=half):
                output = net(view.images).float()
            yield view, output
    finally:
        net.train(training)


def score(net: nn.Module, task: Task, images: LabeledSet[Any], device: torch.device) -> Score:
    """Measure a net against truth."""
    meter = task.meter(device)
    for view, output in logits(net, task, images, device):
        assert view.truth is not None
        meter.add(output, view.truth)
    return Score(
        accuracy=meter.accuracy(),
        fine_grained=meter.fine_grained(),
        count=meter.count,
        per_class=meter.per_class(),
        confusion=meter.matrix.tolist(),
        mean_iou=meter.mean_iou() if task.pixels else None,
        iou=meter.iou() if task.pixels else None,
        absent=meter.absent() if task.pixels else None,
    )


def label(net: nn.Module, task: Task, images: UnlabeledSet[Any], device: torch.device) -> Target:
    """The net's label of every image and its confidence, on the host. For images in order; pixels are streamed."""
    parts = [output.softmax(1).max(1) for _, output in logits(net, task, images, device)]
    labels = torch.cat([each.indices for each in parts]).cpu()
    return Target(labels, torch.cat([each.values for each in parts]).cpu())
