"""A finished net labels all unlabeled images, and the most confident labels are kept.

The one folder that chooses between the store of images and that of pixels.
"""

import tempfile
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
from dmt.data.ragged import Ragged
from dmt.data.sets import PseudoLabels
from dmt.pseudo.image_store import ImageStore
from dmt.pseudo.pixel_store import PixelStore
from dmt.pseudo.pixel_writer import PixelWriter
from dmt.pseudo.store import Store
from dmt.tasks.base import Task, View
from dmt.training import inference
from dmt.types import IGNORE, ProgressCallback, Target


@dataclass(frozen=True)
class Wish:
    """Which labels to keep.

    Attributes:
        fraction: α, the share to keep.
        per_class: rank within each predicted class.
        noise: share of kept labels to corrupt, for stress tests.
        seed: of the stage that will learn from them; only the noise depends on it.
        provenance: who labels, in which round: stored beside the labels.
        soft: store what the teacher gives every class, too.
        renormalized: choose labels by probabilities divided by each class's threshold.
        graph: spread the given labels over the teacher's features instead.
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
    """Finished nets, on the device, and the task whose unlabeled images they label together."""

    nets: tuple[nn.Module, ...]
    task: Task
    device: torch.device
    views: tuple[LabelingView, ...] = (PLAIN,)  # in which every net sees every image
    processes: Processes | None = None  # that take turns with the images; the first gets all labels
    whole: bool = False  # whether what they give every class of an image is asked for


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
    store = label(teacher, wish)
    store.save(folder.path)
    return store


def load(task: Task, folder: Path) -> Store[Any]:
    """The stored labels of a stage, as they were written."""
    if task.pixels:
        return PixelStore.load(folder)
    store = ImageStore.load(folder)
    store.require_possible(folder, len(task.unlabeled), len(task.classes))
    return store


def observed(folder: Path) -> dict[str, Any]:
    """What an audit counted while the labels of a stage were made."""
    path = folder / run_files.AUDIT
    return files.read_json(path, schemas.AUDIT) if path.exists() else {}


def label(teacher: Teacher, wish: Wish) -> ImageStore:
    """A label for each image."""
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
    # before the labels are complete: afterwards those that were not kept are gone
    files.write_json(folder.path / run_files.AUDIT, {} if observer is None else observer.numbers())
    writer.select(wish.fraction, wish.noise, wish.seed, device)
    return writer.store(wish.provenance)


def _writer(task: Task, folder: LabelFolder) -> PixelWriter:
    unlabeled, palette = task.unlabeled, palettes.flat(task.colors)
    return PixelWriter(folder.path, unlabeled.ids, unlabeled.images.sizes, len(task.classes), palette, folder.cache)


def pixels_in_memory(teacher: Teacher, wish: Wish) -> PseudoLabels[Ragged]:
    """The surest labels of pixels, for a trial that leaves no files."""
    with tempfile.TemporaryDirectory() as unused:
        writer = _writer(teacher.task, LabelFolder(Path(unused)))
        label_pixels(teacher, writer)
        writer.select(wish.fraction, wish.noise, wish.seed, teacher.device)
        return writer.store({}).open(teacher.task.unlabeled)


def label_pixels(
    teacher: Teacher,
    writer: PixelWriter,
    observer: LabelingObserver | None = None,
    on_progress: ProgressCallback | None = None,
) -> None:
    """A label for each pixel, handed to the writer image by image: all logits at once would not fit into memory."""
    done = 0
    for view, labels, found in _coded(teacher):  # (n, H, W), padding included
        if observer is not None:
            observer.see(view.positions, labels, found)
        writer.take(view.positions, labels, found)
        done += len(view.positions)
        if on_progress is not None:
            on_progress(done, len(teacher.task.unlabeled))


def help_label(teacher: Teacher) -> None:
    """Label what is this process's turn, for the first process."""
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
    """Labels of some images at a time and the codes of their confidences.

    In the first process those of all images, in order; in others those that are its turn.
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
    """What another process found in the images of a view."""
    shape, device = (len(view.images), *view.images.shape[-2:]), view.images.device
    labels = processes.receive(torch.empty(shape, dtype=torch.uint8), rank)
    found = processes.receive(torch.empty(shape, dtype=torch.int32), rank)
    return labels.to(device, torch.int64), found.to(device)


def _choose(target: Target, classes: int, fraction: float, *, per_class: bool) -> Tensor:
    """Which labels to keep: the top ``fraction`` by confidence, over all or within each class."""
    if per_class:
        return selection.top_per_class(target.confidence, target.labels, fraction, classes)
    return selection.top(target.confidence, fraction)


def _spread(teacher: Teacher, target: Target, wanted: Graph) -> Target:
    """Labels that reach an image over the graph, with their share as confidence; where none does, its net's, unsure.

    Several copies of a net see the mean of their features.
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
    """CBST's own choice: of p_c / θ_c the largest is the label, kept if it is 1 or more; confidence stays p_c.

    θ_c is the probability that the surest ``fraction`` of the images labeled c reach.
    """
    assert target.soft is not None, "renormalizing needs what the teacher gives every class"
    thresholds = selection.thresholds(target.confidence, target.labels, fraction, target.soft.shape[1])
    share, labels = (target.soft / thresholds).max(1)
    confidence = target.soft.gather(1, labels[:, None]).squeeze(1)
    return Target(labels, confidence, target.soft), share >= 1


def _corrupt(target: Target, selected: Tensor, classes: int, share: float, seed: int) -> Target:
    """Replace a share of the kept labels by another class, drawn evenly; confidence stays. For stress tests."""
    rng = streams.stream(seed, "pseudo noise")
    kept = selected.nonzero().squeeze(1).numpy()
    chosen = torch.from_numpy(rng.permutation(kept)[: selection.quota(share, len(kept))])
    labels = target.labels.clone()
    shift = torch.from_numpy(rng.integers(1, classes, size=len(chosen)))
    labels[chosen] = (labels[chosen] + shift) % classes
    if target.soft is None:
        return Target(labels, target.confidence)
    soft, right = target.soft.clone(), target.labels[chosen]  # the wrong class gets what the right one had
    soft[chosen, labels[chosen]], soft[chosen, right] = target.soft[chosen, right], target.soft[chosen, labels[chosen]]
    return Target(labels, target.confidence, soft)
