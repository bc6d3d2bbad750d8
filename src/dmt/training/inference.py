"""Nets at work: predictions and scores, always in eval mode, with float32 logits."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from dmt.core import dropout, streams
from dmt.core.evidence import Evidence, EvidenceCollector
from dmt.core.labeling_views import PLAIN, LabelingView
from dmt.core.metrics import Confusion
from dmt.core.processes import Processes
from dmt.data.sets import LabeledSet, UnlabeledSet
from dmt.tasks.base import Task, View, every
from dmt.types import ProgressCallback, Target


@dataclass(frozen=True)
class Score:
    """A net on a set of images with truth; percentages. The last three are of pixels only.

    Attributes:
        accuracy: share of right sites.
        fine_grained: the same, each right site counted as its probability.
        count: sites.
        per_class: recall of each class.
        confusion: rows truth, columns prediction.
        calibration: by range of confidence: sites, mean confidence, accuracy.
        calibration_error: mean gap between confidence and accuracy.
        mean_iou: over the classes that occur.
        iou: of each class, NaN for those that do not.
        absent: classes without a single pixel of truth.
    """

    accuracy: float
    fine_grained: float
    count: int
    per_class: list[float]
    confusion: list[list[int]]
    calibration: list[tuple[int, float, float]]
    calibration_error: float
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
    with in_eval_mode([net]):
        for view in task.views(images, device):
            yield view, forward(net, task, view)


@torch.no_grad()
def probabilities(
    nets: Sequence[nn.Module],
    task: Task,
    images: UnlabeledSet[Any],
    device: torch.device,
    views: Sequence[LabelingView] = (PLAIN,),
) -> Iterator[tuple[View, Tensor]]:
    """Float32 probabilities of all images, each once: the mean over these nets and over these views of an image."""
    with in_eval_mode(nets):
        for view in task.views(images, device):
            yield view, mean(nets, task, view, views)


def mean(nets: Sequence[nn.Module], task: Task, view: View, views: Sequence[LabelingView]) -> Tensor:
    """Float32 probabilities of some images: the mean over nets in eval mode, and over these views of an image."""
    passes = (_logits_in(net, task, view, seen).softmax(1) for net in nets for seen in views)
    total = next(passes)
    for each in passes:
        total += each
    return total.div_(len(nets) * len(views))


def _logits_in(net: nn.Module, task: Task, view: View, seen: LabelingView) -> Tensor:
    """Logits of some images in one view of them."""
    look = partial(_forward, net, task.pixels)
    if not seen.dropout_pass:
        return task.logits(view, seen, look)
    seed = streams.seed_of(int(view.positions[0]), "labeling dropout", seen.dropout_pass)
    with dropout.active(net, seed, view.images.device):
        return task.logits(view, seen, look)


def forward(net: nn.Module, task: Task, view: View) -> Tensor:
    """Float32 logits of some images, by a net in eval mode."""
    return _forward(net, task.pixels, view.images)


@contextmanager
def in_eval_mode(nets: Sequence[nn.Module]) -> Iterator[None]:
    """Within, nets are in eval mode."""
    modes = [net.training for net in nets]
    try:
        for net in nets:
            net.eval()
        yield
    finally:
        for net, training in zip(nets, modes, strict=True):
            net.train(training)


def _forward(net: nn.Module, pixels: bool, images: Tensor) -> Tensor:
    # pixels are many: convolutions in bf16 there, as in training; the nets compute their last layer in float32
    kind = images.device.type
    with torch.autocast(kind, torch.bfloat16, enabled=pixels and kind == "cuda"):
        output: Tensor = net(images).float()
    return output


def score(net: nn.Module, task: Task, images: LabeledSet[Any], device: torch.device) -> Score:
    """Measure a net against truth."""
    return score_with_evidence(net, task, images, device)[0]


def score_with_evidence(
    net: nn.Module,
    task: Task,
    images: LabeledSet[Any],
    device: torch.device,
    on_progress: ProgressCallback | None = None,
) -> tuple[Score, Evidence]:
    """Measure a net against truth, and keep what it said of every image.

    Args:
        on_progress: hears how many images are done.
    """
    done = 0
    meter, collector = task.meter(device), EvidenceCollector(len(images), len(task.classes), task.pixels)
    for view, output in logits(net, task, images, device):
        assert view.truth is not None
        meter.add(output, view.truth)
        collector.add(view.positions, output, view.truth)
        done += len(view.positions)
        if on_progress is not None:
            on_progress(done, len(images))
    return _score(meter, task.pixels), collector.evidence()


def _score(meter: Confusion, pixels: bool) -> Score:
    return Score(
        accuracy=meter.accuracy(),
        fine_grained=meter.fine_grained(),
        count=meter.count,
        per_class=meter.per_class(),
        confusion=meter.matrix.tolist(),
        calibration=meter.calibration(),
        calibration_error=meter.calibration_error(),
        mean_iou=meter.mean_iou() if pixels else None,
        iou=meter.iou() if pixels else None,
        absent=meter.absent() if pixels else None,
    )


@torch.no_grad()
def features(net: nn.Module, task: Task, images: UnlabeledSet[Any] | LabeledSet[Any], device: torch.device) -> Tensor:
    """(N, F) what the last layer of a net reads of each image, on the host."""
    told: Callable[[Tensor], Tensor] = net.embed  # type: ignore[assignment]
    with in_eval_mode([net]):
        return torch.cat([task.logits(view, PLAIN, told).float().cpu() for view in task.views(images, device)])


@torch.no_grad()
def label(
    nets: Sequence[nn.Module],
    task: Task,
    images: UnlabeledSet[Any],
    device: torch.device,
    views: Sequence[LabelingView] = (PLAIN,),
    processes: Processes | None = None,
    *,
    soft: bool = False,
) -> Target:
    """The label that the nets together give every image, and its confidence, on the host; pixels are streamed.

    Args:
        processes: that take turns with the views; each gets all labels.
        soft: keep what they give every class, too.
    """
    # room for all at once: small results between the large tensors of a pass would keep the heap from shrinking
    whole = torch.zeros(len(images), len(task.classes)) if soft else None
    target = Target(torch.zeros(len(images), dtype=torch.int64), torch.zeros(len(images)), whole)
    with in_eval_mode(nets):
        for view in task.views(images, device, every if processes is None else processes.has_turn):
            found = mean(nets, task, view, views)
            confidence, labels = found.max(1)
            target.labels[view.positions], target.confidence[view.positions] = labels.cpu(), confidence.cpu()
            if whole is not None:
                whole[view.positions] = found.cpu()
    if processes is not None:  # zeros elsewhere: a sum is exact
        processes.sum_(target.labels)
        processes.sum_(target.confidence)
        if whole is not None:
            processes.sum_(whole)
    return target
