"""The pseudo labels of a stage: requested from its teacher, used in training, and audited when it is finished."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from dmt import run_files
from dmt.core import streams
from dmt.data import sets
from dmt.data.audits import Audit
from dmt.data.sets import LabeledSet, PseudoLabels
from dmt.errors import ConfigError
from dmt.fitting import assessment, samples
from dmt.pseudo import labeler
from dmt.pseudo.background import BackgroundWork
from dmt.pseudo.labeler import LabelFolder, Wish
from dmt.pseudo.store import Store
from dmt.runs.identity import Work
from dmt.tasks.base import Task
from dmt.training.journal import Journal
from dmt.training.trainer import Trainer


def wish(work: Work, teacher: Work) -> Wish:
    """Return how a stage's pseudo labels are to be made; ``teacher`` is the stage whose nets make them."""
    wanted = work.stage.labels
    assert wanted is not None
    provenance = dataclasses.asdict(wanted) | {"teacher": teacher.place, "round": work.stage.round}
    return Wish(
        wanted.fraction,
        wanted.per_class,
        wanted.noise,
        work.stream_seed,
        provenance,
        soft=wanted.soft,
        renormalized=wanted.renormalized,
        graph=wanted.graph,
    )


class Lesson:
    """The pseudo labels that a stage learns from.

    Use it in a `with` block: files that do not exist yet are written in the background while the block runs. Call
    `settle` before saving a state that depends on them. If the block fails, writing is canceled.

    Attributes:
        store: the stored labels.
        pseudo: the same labels in memory.
    """

    def __init__(self, store: Store[Any], pseudo: PseudoLabels[Any]) -> None:
        self.store, self.pseudo = store, pseudo
        self._writing: BackgroundWork | None = None

    @classmethod
    def open(cls, store: Store[Any], task: Task, folder: LabelFolder, journal: Journal) -> "Lesson":
        """Read the labels if they are not in memory yet, and add a line about them to the journal, once."""
        if not store.kept:
            raise ConfigError(f"{folder.path.name} keeps no pseudo label at all; set fractions higher")
        if not any(line["kind"] == "labels" for line in journal.read()):
            classes = len(task.classes)
            labeled = sets.counts(task.labeled.labels, classes).tolist()  # what coverage is compared with
            journal.write("labels", kept=store.kept, of=store.of, coverage=store.coverage(classes), labeled=labeled)
        return cls(store, store.open(task.unlabeled, folder.on_progress, folder.cache))

    def __enter__(self) -> "Lesson":
        if self.store.pending is not None:
            self._writing = BackgroundWork(self.store.pending)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.settle()
        elif self._writing is not None:
            self._writing.cancel()

    def settle(self, notify: Callable[[str], None] | None = None) -> None:
        """Wait until the labels are complete on disk; ``notify`` gets a message if they are not yet."""
        if self._writing is None:
            return
        if notify is not None and self._writing.busy:
            notify(f"the labels of {self.store.images:,} images are still being written; waiting for that")
        self._writing.wait()
        self._writing = None

    def judge(self, trainer: Trainer, task: Task, audit: Audit[Any], place: Path) -> dict[str, Any]:
        """Write pictures of the samples and return the audit of the labels, also as weighted by the student."""
        samples.write_round(place / run_files.SAMPLES, trainer, task, self.pseudo)
        return assessment.pseudo_labels(trainer, task, audit, self.pseudo, labeler.observed(place))

    def close(self) -> None:
        """Remove files that are no longer needed once the stage is finished."""
        self.store.close()


def shared(labeled: LabeledSet[Any], work: Work) -> LabeledSet[Any]:
    """Return the stage's share of the labels; the shares of both lines are cut from one shuffled list."""
    if work.stage.share is None:
        return labeled
    order = streams.stream(work.seed, "share").permutation(len(labeled))
    return labeled.take(torch.from_numpy(order[work.stage.share.slice(len(labeled))]))
