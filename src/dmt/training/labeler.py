"""A finished net labels all unlabeled images, and the most confident labels are kept."""

from typing import Any

import torch
from torch import Tensor, nn

from dmt.core import selection, streams
from dmt.tasks.base import Task
from dmt.training import inference
from dmt.training.store import Store
from dmt.types import Target


def label(
    net: nn.Module,
    task: Task,
    device: torch.device,
    *,
    fraction: float,
    per_class: bool,
    noise: float,
    seed: int,
    provenance: dict[str, Any],
) -> Store:
    """Pseudo labels of the whole unlabeled set by one net.

    Args:
        net: the teacher, on the device.
        fraction: α, the share to keep.
        per_class: rank within each predicted class.
        noise: share of kept labels to falsify, for stress tests.
        seed: of the stage that will learn from them; only the noise depends on it.
        provenance: who labels, in which round: stored beside the labels.
    """
    target = inference.label(net, task, task.unlabeled, device)
    selected = _choose(target, len(task.classes), fraction, per_class=per_class)
    if noise:
        target = _corrupt(target, selected, len(task.classes), noise, seed)
    return Store(target, selected, provenance)


def _choose(target: Target, classes: int, fraction: float, *, per_class: bool) -> Tensor:
    """Which labels to keep: the top ``fraction`` by confidence, over all or within each class."""
    if per_class:
        return selection.top_per_class(target.confidence, target.labels, fraction, classes)
    return selection.top(target.confidence, fraction)


def _corrupt(target: Target, selected: Tensor, classes: int, share: float, seed: int) -> Target:
    """Replace a share of the kept labels by another class, drawn evenly; confidence stays. For stress tests."""
    rng = streams.stream(seed, "pseudo noise")
    kept = selected.nonzero().squeeze(1).numpy()
    chosen = torch.from_numpy(rng.permutation(kept)[: selection.quota(share, len(kept))])
    labels = target.labels.clone()
    shift = torch.from_numpy(rng.integers(1, classes, size=len(chosen)))
    labels[chosen] = (labels[chosen] + shift) % classes
    return Target(labels, target.confidence)
