"""A finished net labels all unlabeled images, and the most confident labels are kept."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from dmt.core import codes, selection, streams
from dmt.pseudo.image_store import Store
from dmt.pseudo.pixel_store import PixelStore
from dmt.pseudo.pixel_writer import PixelWriter
from dmt.tasks.base import Task
from dmt.training import inference
from dmt.types import Target


@dataclass(frozen=True)
class Wish:
    """Which labels to keep.

    Attributes:
        fraction: α, the share to keep.
        per_class: rank within each predicted class.
        noise: share of kept labels to corrupt, for stress tests.
        seed: of the stage that will learn from them; only the noise depends on it.
        provenance: who labels, in which round: stored beside the labels.
    """

    fraction: float
    per_class: bool = False
    noise: float = 0.0
    seed: int = 0
    provenance: dict[str, Any] = field(default_factory=dict)


class Watch(Protocol):
    """Looks on while pixels are labeled. Nothing comes back from it."""

    def see(self, positions: Tensor, labels: Tensor, codes: Tensor) -> None: ...


def label(net: nn.Module, task: Task, device: torch.device, wish: Wish) -> Store:
    """Pseudo labels of the whole unlabeled set by one net on the device: a label for each image."""
    target = inference.label(net, task, task.unlabeled, device)
    selected = _choose(target, len(task.classes), wish.fraction, per_class=wish.per_class)
    if wish.noise:
        target = _corrupt(target, selected, len(task.classes), wish.noise, wish.seed)
    return Store(target, selected, wish.provenance)


def label_pixels(
    net: nn.Module,
    task: Task,
    device: torch.device,
    writer: PixelWriter,
    watch: Watch | None = None,
    tell: Callable[[int, int], None] | None = None,
) -> None:
    """A label for each pixel.

    Args:
        net: the teacher, on the device.
        writer: takes the labels; the caller selects and writes.
        watch: sees every label, for the audit.
        tell: hears how many images are done.
    """
    done = 0
    for view, output in inference.logits(net, task, task.unlabeled, device):
        labels, found = codes.confident(output)  # (n, H, W), padding included
        if watch is not None:
            watch.see(view.positions, labels, found)
        writer.take(view.positions, labels, found)
        done += len(view.positions)
        if tell is not None:
            tell(done, len(task.unlabeled))


def load(task: Task, folder: Path) -> Store | PixelStore:
    """The stored labels of a stage."""
    return PixelStore.load(folder) if task.pixels else Store.load(folder)


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
