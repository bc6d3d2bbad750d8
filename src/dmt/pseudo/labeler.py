"""Pseudo-labeling: finished nets label all unlabeled images, and the most confident labels are kept.

Only this module chooses between the store for images and the store for pixels.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dmt import files, run_files, schemas
from dmt.core import codes, graph, selection, streams
from dmt.core.graph import Graph
from dmt.core.labeling_views import PLAIN, LabelingView
from dmt.core.processes import Processes
from dmt.data.audits import Audit, LabelingObserver
from dmt.data.pixels import palettes
from dmt.pseudo.image_store import ImageStore
from dmt.pseudo.pixel_store import PixelStore
from dmt.pseudo.pixel_writer import PixelWriter
from dmt.pseudo.store import Store
from dmt.tasks.base import Task, View
from dmt.training import inference
from dmt.types import IGNORE, ProgressCallback, Target


@dataclass(frozen=True)
class Wish:
    """How pseudo labels are made from a teacher's predictions, and which of them are kept.

    Attributes:
        fraction: α, the share of labels to keep.
        per_class: rank by confidence within each predicted class instead of over all images.
        noise: share of the kept labels to corrupt, for stress tests.
        seed: the seed of the stage that will learn from the labels; only the noise depends on it.
        provenance: teacher and round, stored with the labels.
        soft: also store the teacher's probability of every class (images only).
        renormalized: choose labels by probabilities divided by each class's threshold, as in CBST (images only).
        graph: propagate the given labels over a graph of the teacher's features instead of using its predictions
            (images only).
    """

    fraction: float
    per_class: bool = False
    noise: float = 0.0
    seed: int = 0
    provenance: dict[str, Any] = field(default_factory=dict)
    soft: bool = False
    renormalized: bool = False
    graph: Graph | None = None


class Teacher(NamedTuple):
    """Finished nets on the device, and the task whose unlabeled images they label with their mean probabilities."""

    nets: tuple[nn.Module, ...]
    task: Task
    device: torch.device
    views: tuple[LabelingView, ...] = (PLAIN,)  # views of each image whose probabilities are averaged
    processes: Processes | None = None  # processes that share the images; the first one receives all labels
    whole: bool = False  # whether the probabilities of all classes are needed (images only)


@dataclass(frozen=True)
class LabelFolder:
    """A folder to write pseudo labels to.

    Attributes:
        path: the folder of the stage that learns from the labels.
        cache: a folder for planes too large for memory.
        on_progress: is called with (done, total) while images are labeled.
    """

    path: Path
    cache: Path | None = None
    on_progress: ProgressCallback | None = None


def make(teacher: Teacher, wish: Wish, folder: LabelFolder, audit: Audit[Any]) -> Store[Any]:
    """Label all unlabeled images and keep the most confident labels.

    Labels of images are small and are written before this returns. Files of pixel labels may still be
    `Store.pending`.
    """
    if teacher.task.pixels:
        return _make_pixels(teacher, wish, folder, audit)
    store = label(teacher, wish)
    store.save(folder.path)
    return store


def load(task: Task, folder: Path) -> Store[Any]:
    """Load the stored labels of a stage."""
    if task.pixels:
        return PixelStore.load(folder)
    store = ImageStore.load(folder)
    store.require_possible(folder, len(task.unlabeled), len(task.classes))
    return store


def observed(folder: Path) -> dict[str, Any]:
    """Return what the audit counted while the labels of a stage were made; empty if nothing was recorded."""
    path = folder / run_files.AUDIT
    return files.read_json(path, schemas.AUDIT) if path.exists() else {}


def label(teacher: Teacher, wish: Wish) -> ImageStore:
    """Label every unlabeled image, without writing anything."""
    target, classes = _asked(teacher), len(teacher.task.classes)
    if wish.graph is not None:
        target = _spread(teacher, target, wish.graph)
    if wish.renormalized:
        target, selected = _renormalized(target, wish.fraction)
    else:
        selected = _choose(target, classes, wish.fraction, per_class=wish.per_class)
    if wish.noise:
        target = _corrupt(target, selected, classes, wish.noise, wish.seed)
    return ImageStore(target if wish.soft else replace(target, soft=None), selected, wish.provenance)


def _asked(teacher: Teacher) -> Target:
    nets, task, device, views, processes, whole = teacher
    return inference.label(nets, task, task.unlabeled, device, views, processes, soft=whole)


def _make_pixels(teacher: Teacher, wish: Wish, folder: LabelFolder, audit: Audit[Any]) -> PixelStore:
    writer, device = _writer(teacher.task, folder), teacher.device
    observer = audit.observer()
    label_pixels(teacher, writer, observer, folder.on_progress)
    # counted before the selection, which discards the labels that are not kept
    files.write_json(folder.path / run_files.AUDIT, {} if observer is None else observer.numbers())
    writer.select(wish.fraction, wish.noise, wish.seed, device)
    return writer.store(wish.provenance)


def _writer(task: Task, folder: LabelFolder) -> PixelWriter:
    unlabeled, palette = task.unlabeled, palettes.flat(task.colors)
    return PixelWriter(folder.path, unlabeled.ids, unlabeled.images.sizes, len(task.classes), palette, folder.cache)


def label_pixels(
    teacher: Teacher,
    writer: PixelWriter,
    observer: LabelingObserver | None = None,
    on_progress: ProgressCallback | None = None,
) -> None:
    """Label every pixel, handing each batch to the writer: the logits of all images would not fit into memory.

    The observer, if any, also sees the labels that will not be kept.
    """
    done = 0
    for view, labels, found in _coded(teacher):  # (n, H, W), padding included
        if observer is not None:
            observer.see(view.positions, labels, found)
        writer.take(view.positions, labels, found)
        done += len(view.positions)
        if on_progress is not None:
            on_progress(done, len(teacher.task.unlabeled))


def help_label(teacher: Teacher) -> None:
    """Label this process's share of the images and send the labels to the first process."""
    processes = teacher.processes
    if not teacher.task.pixels:
        _asked(teacher)
        return
    for _, labels, found in _coded(teacher):
        assert processes is not None
        processes.send(labels.to(torch.uint8))
        processes.send(found)


@torch.no_grad()
def _coded(teacher: Teacher) -> Iterator[tuple[View, Tensor, Tensor]]:
    """Yield batches of images with their labels and confidence codes, (n, H, W) each, padding included.

    The first process yields all images in order, receiving from the other processes what they labeled; every other
    process yields its own share.
    """
    nets, task, device, views, processes, _ = teacher
    single = len(nets) == len(views) == 1
    with inference.in_eval_mode(nets):
        for number, view in enumerate(task.views(task.unlabeled, device)):
            turn, rank = (0, 0) if processes is None else (processes.turn(number), processes.rank)
            if turn == rank:
                yield (
                    view,
                    *(
                        codes.confident(inference.forward(nets[0], task, view))
                        if single
                        else codes.most_likely(inference.mean(nets, task, view, views))
                    ),
                )
            elif processes is not None and processes.leads:
                yield view, *_received(processes, turn, view)


def _received(processes: Processes, rank: int, view: View) -> tuple[Tensor, Tensor]:
    """Receive the labels and codes that another process found for the images of a view."""
    shape, device = (len(view.images), *view.images.shape[-2:]), view.images.device
    labels = processes.receive(torch.empty(shape, dtype=torch.uint8), rank)
    found = processes.receive(torch.empty(shape, dtype=torch.int32), rank)
    return labels.to(device, torch.int64), found.to(device)


def _choose(target: Target, classes: int, fraction: float, *, per_class: bool) -> Tensor:
    """Return a mask (N,) of the top ``fraction`` by confidence, over all images or within each predicted class."""
    if per_class:
        return selection.top_per_class(target.confidence, target.labels, fraction, classes)
    return selection.top(target.confidence, fraction)


def _spread(teacher: Teacher, target: Target, wanted: Graph) -> Target:
    """Propagate the given labels over a graph of the teacher's features.

    An image gets the class that reaches it most, with that class's share as confidence. An image that no label
    reaches keeps the teacher's prediction, with confidence 0. The features of several nets are averaged.
    """
    task, device = teacher.task, teacher.device
    parts = [
        torch.stack([inference.features(net, task, images, device) for net in teacher.nets]).mean(0)
        for images in (task.labeled, task.unlabeled)
    ]
    cosines, neighbors = graph.nearest(torch.cat(parts).to(device), wanted.neighbors)
    given = torch.cat([task.labeled.labels, torch.full((len(task.unlabeled),), IGNORE)])
    reached = graph.spread(cosines.cpu(), neighbors.cpu(), given, len(task.classes), wanted)[len(task.labeled) :]
    total = reached.sum(1, keepdim=True)
    confidence, labels = (reached / total.clamp_min(1e-300)).float().max(1)
    known = total.squeeze(1) > 0
    soft = None if target.soft is None else torch.where(known[:, None], (reached / total).float(), target.soft)
    return Target(torch.where(known, labels, target.labels), confidence * known, soft)


def _renormalized(target: Target, fraction: float) -> tuple[Target, Tensor]:
    """Relabel and select as CBST does: the label is argmax p_c / θ_c, kept if that ratio is at least 1.

    θ_c is the lowest confidence among the most confident ``fraction`` of the images predicted as c. The confidence of
    the new label c is p_c, not the ratio.
    """
    assert target.soft is not None, "renormalizing needs what the teacher gives every class"
    thresholds = selection.thresholds(target.confidence, target.labels, fraction, target.soft.shape[1])
    share, labels = (target.soft / thresholds).max(1)
    confidence = target.soft.gather(1, labels[:, None]).squeeze(1)
    return Target(labels, confidence, target.soft), share >= 1


def _corrupt(target: Target, selected: Tensor, classes: int, share: float, seed: int) -> Target:
    """Replace a share of the kept labels by another class, drawn uniformly; for stress tests. Confidence stays."""
    rng = streams.stream(seed, "pseudo noise")
    kept = selected.nonzero().squeeze(1).numpy()
    chosen = torch.from_numpy(rng.permutation(kept)[: selection.quota(share, len(kept))])
    labels = target.labels.clone()
    shift = torch.from_numpy(rng.integers(1, classes, size=len(chosen)))
    labels[chosen] = (labels[chosen] + shift) % classes
    if target.soft is None:
        return Target(labels, target.confidence)
    soft, right = target.soft.clone(), target.labels[chosen]  # swap the probabilities of the old and the new class
    soft[chosen, labels[chosen]], soft[chosen, right] = target.soft[chosen, right], target.soft[chosen, labels[chosen]]
    return Target(labels, target.confidence, soft)
