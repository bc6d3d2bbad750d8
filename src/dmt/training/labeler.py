"""A finished net labels all unlabeled images, and the most confident labels are kept."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn

from dmt.core import codes, selection, streams, trees
from dmt.core.ranks import ClassRanks
from dmt.data import size_groups
from dmt.tasks.base import Task
from dmt.training import code_planes, inference
from dmt.training.pixel_store import PixelStore
from dmt.training.pixel_writer import PixelWriter
from dmt.training.store import Store
from dmt.types import Target

Item = TypeVar("Item")


@dataclass(frozen=True)
class Wish:
    """Which labels to keep.

    Attributes:
        fraction: α, the share to keep.
        per_class: rank within each predicted class.
        noise: share of kept labels to falsify, for stress tests.
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
    """A label for each pixel, written as it comes: memory does not depend on the number of images.

    Args:
        net: the teacher, on the device.
        writer: takes the labels; the caller finishes it.
        watch: sees every label, for the audit.
        tell: hears how many images are done.
    """
    sizes, done = task.unlabeled.images.sizes, 0
    for positions, fetched in _one_behind(_predictions(net, task, device, writer.ranks, watch)):
        labels, packed = fetched.arrived()
        found = code_planes.unsigned(packed)  # int16 crossed the bus at half the bytes
        for row, position in enumerate(positions.tolist()):
            height, width = sizes[position]
            writer.add(position, labels[row, :height, :width], found[row, :height, :width], counted=True)
        done += len(positions)
        if tell is not None:
            tell(done, len(sizes))


def _predictions(
    net: nn.Module, task: Task, device: torch.device, ranks: ClassRanks, watch: Watch | None
) -> Iterator[tuple[Tensor, trees.Fetched]]:
    """Positions of a batch, and its labels and packed codes (n, H, W), padding included, on their way here."""
    sizes = torch.tensor(task.unlabeled.images.sizes).view(-1, 2)
    for view, output in inference.logits(net, task, task.unlabeled, device):
        labels, found = codes.confident(output)
        ranks.add(labels, found, size_groups.padding(sizes[view.positions], labels))
        if watch is not None:
            watch.see(view.positions, labels, found)
        yield view.positions, trees.Fetched(labels.to(torch.uint8), codes.pack(found))


def _one_behind(items: Iterator[Item]) -> Iterator[Item]:
    """Each item after the next one was begun: the device works on that one while the host works on this one."""
    held = next(items, None)
    for item in items:
        assert held is not None
        yield held
        held = item
    if held is not None:
        yield held


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
