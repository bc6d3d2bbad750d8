"""Inference: predictions and scores, always in eval mode and with float32 logits."""

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
    """Scores of a net on a set of images with ground truth, in percent. The last three are for segmentation only.

    Attributes:
        accuracy: share of correct sites.
        fine_grained: accuracy with each correct site counted as its predicted probability.
        count: number of sites with ground truth.
        per_class: recall of each class.
        confusion: confusion matrix; rows are ground truth, columns predictions.
        calibration: number of sites, mean confidence and accuracy, for each bin of confidence.
        calibration_error: mean gap between confidence and accuracy.
        mean_iou: mean over the classes that occur in the ground truth.
        iou: IoU of each class, NaN for classes that do not occur.
        absent: classes without any pixel in the ground truth.
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
    """Yield float32 logits of all images, each once, computed in eval mode; the net's mode is restored afterwards."""
    with in_eval_mode([net]):
        for view in task.views(images, device):
            yield view, forward(net, task, view)


@torch.no_grad()
def probabilities(
    nets: Sequence[nn.Module],
    task: Task,
    images: UnlabeledSet[Any],
    device: torch.device,
) -> Iterator[tuple[View, Tensor]]:
    """Yield float32 probabilities of all images, each once: the mean over the nets."""
    with in_eval_mode(nets):
        for view in task.views(images, device):
            yield view, mean(nets, task, view, (PLAIN,))


def mean(nets: Sequence[nn.Module], task: Task, view: View, views: Sequence[LabelingView]) -> Tensor:
    """Return float32 probabilities of a batch: the mean over nets, which must be in eval mode, and over views."""
    passes = (_logits_in(net, task, view, seen).softmax(1) for net in nets for seen in views)
    total = next(passes)
    for each in passes:
        total += each
    return total.div_(len(nets) * len(views))


def _logits_in(net: nn.Module, task: Task, view: View, seen: LabelingView) -> Tensor:
    """Return a net's logits of a batch of images seen in one labeling view, with dropout if the view asks for it."""
    look = partial(_forward, net, task.pixels)
    if not seen.dropout_pass:
        return task.logits(view, seen, look)
    seed = streams.seed_of(int(view.positions[0]), "labeling dropout", seen.dropout_pass)
    with dropout.active(net, seed, view.images.device):
        return task.logits(view, seen, look)


def forward(net: nn.Module, task: Task, view: View) -> Tensor:
    """Return float32 logits of a batch, by a net that must be in eval mode."""
    return _forward(net, task.pixels, view.images)


@contextmanager
def in_eval_mode(nets: Sequence[nn.Module]) -> Iterator[None]:
    """Put nets into eval mode, and restore their modes on exit."""
    modes = [net.training for net in nets]
    try:
        for net in nets:
            net.eval()
        yield
    finally:
        for net, training in zip(nets, modes, strict=True):
            net.train(training)


def _forward(net: nn.Module, pixels: bool, images: Tensor) -> Tensor:
    # segmentation runs convolutions in bf16 for speed, as in training; the nets compute their last layer in float32
    kind = images.device.type
    with torch.autocast(kind, torch.bfloat16, enabled=pixels and kind == "cuda"):
        output: Tensor = net(images).float()
    return output


def score(net: nn.Module, task: Task, images: LabeledSet[Any], device: torch.device) -> Score:
    """Score a net on images with ground truth."""
    return score_with_evidence(net, task, images, device)[0]


def score_with_evidence(
    net: nn.Module,
    task: Task,
    images: LabeledSet[Any],
    device: torch.device,
    on_progress: ProgressCallback | None = None,
) -> tuple[Score, Evidence]:
    """Score a net on images with ground truth, and return its predictions for every image as evidence, too.

    Args:
        on_progress: is called with (done, total) in images.
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
    """Return the input (N, F) of a net's last layer for each image, on the host."""
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
    """Return the labels and confidence of all images by the mean of the nets' probabilities, on the host.

    This is for classification. Labels of pixels are made batch by batch, in `dmt.pseudo.labeler`.

    Args:
        views: the views of each image whose probabilities are averaged.
        processes: processes that share the batches; each of them returns the labels of all images.
        soft: also return the probabilities of all classes.
    """
    # allocated at once: small results between the large tensors of forward passes would keep the heap from shrinking
    whole = torch.zeros(len(images), len(task.classes)) if soft else None
    target = Target(torch.zeros(len(images), dtype=torch.int64), torch.zeros(len(images)), whole)
    with in_eval_mode(nets):
        for view in task.views(images, device, every if processes is None else processes.has_turn):
            found = mean(nets, task, view, views)
            confidence, labels = found.max(1)
            target.labels[view.positions], target.confidence[view.positions] = labels.cpu(), confidence.cpu()
            if whole is not None:
                whole[view.positions] = found.cpu()
    if processes is not None:  # each image is zero in all processes but one, so the sum is exact
        processes.sum_(target.labels)
        processes.sum_(target.confidence)
        if whole is not None:
            processes.sum_(whole)
    return target
