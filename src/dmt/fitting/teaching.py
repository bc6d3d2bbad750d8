"""The pseudo labels of a stage: made once by its teacher, read by the stage, judged when it is done."""

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn

from dmt import files, run_files
from dmt.data.images.audit import Audit
from dmt.data.pixels.pixel_audit import PixelAudit
from dmt.data.ragged import Ragged
from dmt.errors import ConfigError
from dmt.fitting import assessment, samples
from dmt.pseudo import labeler
from dmt.pseudo.background import BackgroundWork
from dmt.pseudo.image_store import Store
from dmt.pseudo.labeler import Wish
from dmt.pseudo.pixel_store import PixelStore
from dmt.pseudo.pixel_writer import PixelWriter
from dmt.runs.identity import Work
from dmt.tasks.base import Task
from dmt.training.journal import Journal
from dmt.training.trainer import Trainer
from dmt.types import ProgressCallback

Write = Callable[[Callable[[], bool]], None]


@dataclasses.dataclass(frozen=True)
class Made:
    """Pixel labels fresh from their teacher.

    Attributes:
        store: what is known of them.
        planes: the labels and codes, so that nobody has to read them again.
        write: makes their files; takes a function that says whether it was canceled.
    """

    store: PixelStore
    planes: tuple[Ragged, Ragged]
    write: Write


def make(
    net: nn.Module,
    task: Task,
    audit: Audit | PixelAudit,
    device: torch.device,
    place: Path,
    wish: Wish,
    tell: ProgressCallback,
    room: Path,
) -> Made | None:
    """Label all unlabeled images with a finished net, and keep the surest labels.

    Args:
        place: of the stage that will learn from them.
        room: for planes that are too large for memory.

    Returns:
        Labels of pixels, whose files are to be written; those of images are small, and written.
    """
    if not isinstance(audit, PixelAudit):
        labeler.label(net, task, device, wish).save(place)
        return None
    unlabeled = task.unlabeled
    palette = samples.colors(task.colors)
    writer = PixelWriter(place, unlabeled.ids, unlabeled.images.sizes, len(task.classes), palette, room)
    watch = audit.watch()
    labeler.label_pixels(net, task, device, writer, watch, tell)
    # before the labels are complete: afterwards those that were not kept are gone
    files.write_json(place / run_files.AUDIT, {} if watch is None else {"error_top": watch.error_top()})
    summary = writer.select(wish.fraction, wish.noise, wish.seed, device)
    store = PixelStore.of_summary(place, wish.provenance | summary)
    return Made(store, writer.planes, partial(writer.write, wish.provenance))


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


class Lesson:
    """What a stage learns from besides truth.

    Use it in a `with` block: files that are not there yet are written beside what happens in it. Whoever saves a
    state that depends on them calls `settle` first. If the block fails, they are given up.

    Attributes:
        store: the stored labels.
        pseudo: the same as its task's batches take them.
    """

    def __init__(self, store: Store | PixelStore, pseudo: Any, write: Write | None = None) -> None:
        self.store, self.pseudo = store, pseudo
        self._write, self._writing = write, None  # type: Write | None, BackgroundWork | None

    def __enter__(self) -> "Lesson":
        if self._write is not None:
            self._writing, self._write = BackgroundWork(self._write), None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.settle()
        elif self._writing is not None:
            self._writing.cancel()

    def settle(self, tell: Callable[[str], None] | None = None) -> None:
        """Wait until the labels are complete on disk; ``tell`` hears if that takes a while."""
        if self._writing is None:
            return
        if tell is not None and self._writing.busy:
            tell(f"the labels of {self.store.images:,} images are still being written; waiting for that")
        self._writing.wait()
        self._writing = None

    @classmethod
    def read(
        cls, place: Path, task: Task, journal: Journal, tell: ProgressCallback, room: Path, made: Made | None = None
    ) -> "Lesson":
        """Stored labels, or those of pixels that were ``made`` just now; told to the journal once."""
        store = labeler.load(task, place) if made is None else made.store
        if not store.kept:
            raise ConfigError(f"{place.name} keeps no pseudo label at all; set fractions higher")
        if not any(line["kind"] == "labels" for line in journal.read()):
            told = {"kept": store.kept, "of": store.of, "coverage": store.coverage(len(task.classes))}
            told |= {"labeled": _truth(task)}
            journal.write("labels", **told)
        if made is not None:
            return cls(made.store, made.planes, made.write)
        if isinstance(store, PixelStore):
            return cls(store, store.planes(task.unlabeled.images.sizes, tell, room))
        return cls(store, store.taken())

    def judge(self, trainer: Trainer, task: Task, audit: Audit | PixelAudit, place: Path) -> dict[str, Any]:
        """How good the labels were, and what the finished student makes of them."""
        if isinstance(self.store, Store):
            assert isinstance(audit, Audit)
            return assessment.pseudo_labels(trainer, task, audit, self.store)
        assert isinstance(audit, PixelAudit)
        samples.write_round(place / run_files.SAMPLES, trainer, task, self.pseudo)
        tops: dict[str, Any] = files.read_json(place / run_files.AUDIT)
        return tops | assessment.pixel_labels(trainer, task, audit, self.pseudo)

    def close(self) -> None:
        """A finished stage needs the codes of its pixels no more."""
        if isinstance(self.store, PixelStore):
            self.store.drop_codes()
