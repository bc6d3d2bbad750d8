"""A finished net labels all unlabeled images, and the most confident labels are kept.

The one folder that chooses between the store of images and that of pixels.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dmt import files, run_files
from dmt.core import codes, selection, streams
from dmt.data.audits import Audit, LabelingObserver
from dmt.data.pixels import palettes
from dmt.pseudo.image_store import ImageStore
from dmt.pseudo.pixel_store import PixelStore
from dmt.pseudo.pixel_writer import PixelWriter
from dmt.pseudo.store import Store
from dmt.tasks.base import Task
from dmt.training import inference
from dmt.types import ProgressCallback, Target


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


class Teacher(NamedTuple):
    """A finished net, on the device, and the task whose unlabeled images it labels."""

    net: nn.Module
    task: Task
    device: torch.device


@dataclass(frozen=True)
class LabelFolder:
    """A folder that labels are written to or read from.

    Attributes:
        path: of the stage that learns from them.
        cache: a folder for what is too large for memory.
        on_progress: is called while images are labeled or files are read.
    """

    path: Path
    cache: Path | None = None
    on_progress: ProgressCallback | None = None


def make(teacher: Teacher, wish: Wish, folder: LabelFolder, audit: Audit[Any]) -> Store[Any]:
    """Label all unlabeled images and keep the surest labels.

    Those of images are small, and written when this returns. Of pixels the files may still be `Store.pending`.
    """
    if teacher.task.pixels:
        return _make_pixels(teacher, wish, folder, audit)
    store = label(*teacher, wish)
    store.save(folder.path)
    return store


def load(task: Task, folder: Path) -> Store[Any]:
    """The stored labels of a stage."""
    return PixelStore.load(folder) if task.pixels else ImageStore.load(folder)


def observed(folder: Path) -> dict[str, Any]:
    """What an audit counted while the labels of a stage were made."""
    path = folder / run_files.AUDIT
    return files.read_json(path) if path.exists() else {}


def label(net: nn.Module, task: Task, device: torch.device, wish: Wish) -> ImageStore:
    """A label for each image."""
    target = inference.label(net, task, task.unlabeled, device)
    selected = _choose(target, len(task.classes), wish.fraction, per_class=wish.per_class)
    if wish.noise:
        target = _corrupt(target, selected, len(task.classes), wish.noise, wish.seed)
    return ImageStore(target, selected, wish.provenance)


def _make_pixels(teacher: Teacher, wish: Wish, folder: LabelFolder, audit: Audit[Any]) -> PixelStore:
    net, task, device = teacher
    unlabeled, palette = task.unlabeled, palettes.flat(task.colors)
    writer = PixelWriter(folder.path, unlabeled.ids, unlabeled.images.sizes, len(task.classes), palette, folder.cache)
    observer = audit.observer()
    label_pixels(net, task, device, writer, observer, folder.on_progress)
    # before the labels are complete: afterwards those that were not kept are gone
    files.write_json(folder.path / run_files.AUDIT, {} if observer is None else observer.numbers())
    writer.select(wish.fraction, wish.noise, wish.seed, device)
    return writer.store(wish.provenance)


def label_pixels(
    net: nn.Module,
    task: Task,
    device: torch.device,
    writer: PixelWriter,
    observer: LabelingObserver | None = None,
    on_progress: ProgressCallback | None = None,
) -> None:
    """A label for each pixel, handed to the writer image by image: all logits at once would not fit into memory."""
    done = 0
    for view, output in inference.logits(net, task, task.unlabeled, device):
        labels, found = codes.confident(output)  # (n, H, W), padding included
        if observer is not None:
            observer.see(view.positions, labels, found)
        writer.take(view.positions, labels, found)
        done += len(view.positions)
        if on_progress is not None:
            on_progress(done, len(task.unlabeled))


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
