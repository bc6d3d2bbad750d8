"""The pseudo labels of a stage: made once by its teacher, read by the stage, judged when it is done."""

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dmt import assessment, files, samples
from dmt.data import ragged
from dmt.data.audit import Audit
from dmt.data.pixel_audit import PixelAudit
from dmt.data.ragged import Ragged
from dmt.errors import ConfigError
from dmt.identity import Work
from dmt.tasks.base import Task
from dmt.training import labeler
from dmt.training.crew import Behind
from dmt.training.journal import Journal
from dmt.training.labeler import Wish
from dmt.training.pixel_store import PixelStore
from dmt.training.pixel_writer import PixelWriter
from dmt.training.store import Store
from dmt.training.trainer import Trainer

AUDIT = "audit.json"
Tell = Callable[[int, int], None]


@dataclasses.dataclass(frozen=True)
class Made:
    """Pixel labels fresh from their teacher.

    Attributes:
        store: what is known of them.
        planes: the labels and codes, so that nobody has to read them again.
        writing: their files, which are still being written.
    """

    store: PixelStore
    planes: tuple[Ragged, Ragged]
    writing: Behind


def make(
    net: nn.Module, task: Task, audit: Audit | PixelAudit, device: torch.device, place: Path, wish: Wish, tell: Tell
) -> Made | None:
    """Label all unlabeled images with a finished net, keep the surest labels, and write them to ``place``.

    Returns:
        Labels of pixels; those of images are small, written and read like any other file.
    """
    if not isinstance(audit, PixelAudit):
        labeler.label(net, task, device, wish).save(place)
        return None
    sizes = task.unlabeled.images.sizes
    planes = (ragged.blank(sizes, None, torch.uint8), ragged.blank(sizes, None, torch.int16))
    writer = PixelWriter(place, task.unlabeled.ids, len(task.classes), samples.colors(task.colors), planes)
    watch = audit.watch()
    labeler.label_pixels(net, task, device, writer, watch, tell)
    # before the labels are complete: afterwards those that were not kept are gone
    files.write_json(place / AUDIT, {} if watch is None else {"error_top": watch.error_top()})
    writer.select(wish.fraction, wish.noise, wish.seed, device)
    store = PixelStore.of_summary(place, wish.provenance | writer.summary())
    return Made(store, planes, Behind(partial(writer.write, wish.provenance)))


def _truth(task: Task) -> list[int]:
    """Labeled sites of each class: what the shares of the pseudo labels are compared with."""
    labels = task.labeled.labels
    planes = [labels] if isinstance(labels, Tensor) else [labels.image(each).flatten() for each in range(len(labels))]
    size = max(256, len(task.classes))
    counts = sum((torch.bincount(plane, minlength=size) for plane in planes), torch.zeros(size, dtype=torch.int64))
    return counts[: len(task.classes)].tolist()  # without 255, a pixel that has no label


def wish(work: Work, teacher: Work) -> Wish:
    """What a stage wants of its teacher."""
    wanted = work.stage.labels
    assert wanted is not None
    provenance = dataclasses.asdict(wanted) | {"teacher": teacher.place, "round": work.stage.round}
    return Wish(wanted.fraction, wanted.per_class, wanted.noise, work.stream_seed, provenance)


@dataclasses.dataclass(frozen=True)
class Lesson:
    """What a stage learns from besides truth.

    Attributes:
        store: the stored labels.
        pseudo: the same as its task's batches take them.
        writing: what still happens to the files of the store.
    """

    store: Store | PixelStore
    pseudo: Any
    writing: Behind | None = None

    @classmethod
    def read(cls, place: Path, task: Task, journal: Journal, tell: Tell, made: Made | None = None) -> "Lesson":
        """Stored labels, or those of pixels that were ``made`` just now; told to the journal once."""
        store = labeler.load(task, place) if made is None else made.store
        if not store.kept:
            if made is not None:
                made.writing.wait()
            raise ConfigError(f"{place.name} keeps no pseudo label at all; set fractions higher")
        if not any(line["kind"] == "labels" for line in journal.read()):
            told = {"kept": store.kept, "of": store.of, "coverage": store.coverage(len(task.classes))}
            told |= {"labeled": _truth(task)}
            journal.write("labels", **told)
        if made is not None:
            return cls(made.store, made.planes, made.writing)
        if isinstance(store, PixelStore):
            return cls(store, store.planes(task.unlabeled.images.sizes, tell))
        return cls(store, store.taken())

    def judge(self, trainer: Trainer, task: Task, audit: Audit | PixelAudit, place: Path) -> dict[str, Any]:
        """How good the labels were, and what the finished student makes of them."""
        if isinstance(self.store, Store):
            assert isinstance(audit, Audit)
            return assessment.pseudo_labels(trainer, task, audit, self.store)
        assert isinstance(audit, PixelAudit)
        samples.write_round(place / "samples", trainer, task, self.pseudo)
        tops: dict[str, Any] = files.read_json(place / AUDIT)
        return tops | assessment.pixel_labels(trainer, task, audit, self.pseudo)

    def settle(self) -> None:
        """Wait until the labels are complete on disk: a run that stops now can go on with them."""
        if self.writing is not None:
            self.writing.wait()

    def close(self) -> None:
        """A finished stage needs the codes of its pixels no more."""
        self.settle()
        if isinstance(self.store, PixelStore):
            self.store.drop_codes()
