"""A run: methods × seeds, as stages trained once each, in one folder that can be stopped, moved and gone on with."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dmt import assessment, environment, presets, progress, trial
from dmt import config as configuration
from dmt.config import Config
from dmt.core import streams
from dmt.core.execution import Execution
from dmt.data import sets
from dmt.data.audit import Audit
from dmt.data.datasets import DATASETS
from dmt.data.sets import LabeledSet
from dmt.errors import ConfigError
from dmt.folder import Folder, Job
from dmt.identity import Work, identify
from dmt.methods import catalogue
from dmt.models import build
from dmt.report import Report
from dmt.stopping import Stop
from dmt.tasks import classification
from dmt.tasks.base import Batches, Task
from dmt.training import labeler, loop
from dmt.training.checkpoint import Checkpoint, finished_net
from dmt.training.journal import Journal
from dmt.training.store import Store
from dmt.training.trainer import Trainer


@dataclass(frozen=True)
class Conditions:
    """Where and how a run works. None of this enters an identity: a run may move and go on.

    A GPU rounds differently and draws other augmentations than a CPU; each is as valid as the other.
    """

    data_folder: Path
    execution: Execution
    checkpoint_every: float
    stop: Stop
    watcher: progress.Watcher


def fit(
    data: str,
    *,
    out: str | Path,
    method: str | Sequence[str] = "dmt",
    seed: int | Iterable[int] = 1,
    settings: Mapping[str, Any] | None = None,
    data_folder: str | Path = "data",
    device: str = "auto",
    fast: bool | None = None,
    budget: float | None = None,
    checkpoint_every: float = 30.0,
    watcher: progress.Watcher | None = None,
) -> Report:
    """Train one or more methods on a data set and report what came out.

    Repeating the call goes on where it stopped: finished stages are skipped, an interrupted one continues, and the
    result equals that of an unbroken run. Stages that several methods have in common are trained once.

    Args:
        data: a preset, e.g. "digits" or "cifar10-4k".
        out: the run's folder; nothing is written elsewhere.
        method: one or more of `dmt list`.
        seed: one or more; a seed decides the split and every random number.
        settings: options that differ from the preset, by flat key, e.g. ``{"gamma": 5.0}``.
        data_folder: where a data set that is not embedded lies.
        device: "auto", "cpu", "cuda" or "cuda:N".
        fast: compile steps and, on CUDA, record them as a graph; by default on CUDA only.
        budget: stop cleanly after so many seconds.
        checkpoint_every: seconds between checkpoints within a stage.
        watcher: hears of progress; bars or lines by default.

    Raises:
        DmtError: for whatever the caller can mend; `Stopped` when stopped by budget or signal.
    """
    config = configuration.override(presets.get(data).config, settings or {})
    methods = [method] if isinstance(method, str) else list(dict.fromkeys(method))
    seeds = [int(seed)] if isinstance(seed, Integral) else [int(each) for each in dict.fromkeys(seed)]  # type: ignore[arg-type]
    if not checkpoint_every >= 0:
        raise ConfigError(f"checkpoint_every must be 0 seconds or more, not {checkpoint_every}")
    for each in methods:
        catalogue.plan(each, config.recipe)  # an unknown method is refused before anything is written
    if not methods or not seeds:
        raise ConfigError("nothing to train: give at least one method and one seed")
    execution = environment.pick_execution(device, fast)
    with watcher or progress.default() as watching:
        conditions = Conditions(Path(data_folder), execution, checkpoint_every, Stop(budget), watching)
        runner = _Runner(config, Folder(Path(out)), conditions)
        runner.open(seeds)  # data and net are tried before the folder is bound to a configuration
        head = {
            "data": data,
            "config": configuration.flat(config),
            "images": runner.fingerprint,
            "threads": environment.fitting_threads(DATASETS[config.data.dataset].shape),
        }
        with (
            conditions.stop.on_signals(),
            runner.folder.claimed(head) as manifest,
            environment.threads(manifest["threads"]),
            execution.active(),
        ):
            runner.folder.log_session(environment.describe(execution.device))
            runner.run(methods, seeds)
    return Report.read([out])


class _Runner:
    """Trains what a folder still lacks."""

    def __init__(self, config: Config, folder: Folder, conditions: Conditions) -> None:
        self._config, self.folder, self._conditions = config, folder, conditions
        self._tasks: dict[int, tuple[Task, Audit]] = {}
        self.fingerprint = ""  # of all images and labels, once they are open
        self._worked = False

    def open(self, seeds: Sequence[int]) -> None:
        """Read the data, split it for every seed, and see that the net can be built."""
        options = self._config.data
        data = DATASETS[options.dataset]
        images = data.read(self._conditions.data_folder, self._conditions.watcher.note)
        if (len(images[0]), len(images[1])) != (data.train, data.test):
            self._conditions.watcher.note(
                f"note: {data.name} has {data.train:,} training and {data.test:,} test images, "
                f"this folder has {len(images[0]):,} and {len(images[1]):,}"
            )
        self.fingerprint = sets.fingerprint(images)
        self._tasks = {seed: classification.split_up(options, images, seed) for seed in seeds}
        trial.compiles(self._conditions.execution)
        trial.fits(next(iter(self._tasks.values()))[0], self._config.net)

    def run(self, methods: Sequence[str], seeds: Sequence[int]) -> None:
        """All methods of a seed, then the next seed."""
        for seed in seeds:
            self.folder.record_split(seed, self._tasks[seed][0])
        jobs = [self._job(method, seed) for seed in seeds for method in methods]
        self.folder.add_jobs([job for job, _ in jobs])
        works = list({work.identity: work for _, works in jobs for work in works}.values())
        names = {work.identity: _titles(work, jobs) for work in works}
        self._conditions.watcher.begin(sum(w.steps * w.cost for w in works), sum(self._done(w) for w in works))
        for work in works:
            self._stage(work, names[work.identity], {w.stage.name: w for w in _family(work, jobs)})

    def _job(self, method: str, seed: int) -> tuple[Job, list[Work]]:
        plan = catalogue.plan(method, self._config.recipe)
        works = identify(plan, self._config, self._tasks[seed], seed)
        outline = [work.outline() for work in works]
        return Job(method, seed, outline, list(plan.results)), works

    def _done(self, work: Work) -> float:
        state = Checkpoint(self.folder.stage(work.place)).state()
        return 0.0 if state is None else state["step"] * work.cost

    def _stage(self, work: Work, title: str, family: Mapping[str, Work]) -> None:
        """Label, train, score and audit one stage; each part is skipped if it was done before."""
        place = self.folder.stage(work.place)
        checkpoint, journal = Checkpoint(place), Journal(place / "journal.jsonl")
        if self.folder.finished(work.place):
            return
        # every session takes at least one step, however small its budget: repeating it must come to an end
        if self._worked and self._conditions.stop():
            raise self._conditions.stop.error()
        task, audit = self._tasks[work.seed]
        labels = self._labels(work, place, journal, family)
        steps = work.steps if labels is None else work.stage.steps_over(int(labels.selected.sum()))
        self._announce(title, steps, work.cost, checkpoint.state())
        labeled = _shared(audit.everything if work.stage.truth == "everything" else task.labeled, work)
        kept = None if labels is None else labels.kept()
        batches = task.batches(labeled, kept, work.stage.schedule, work.stream_seed, self._conditions.execution)
        trainer = self._trainer(work, steps, task, batches, family)
        pace = loop.Pace(self._conditions.checkpoint_every, self._conditions.stop, self._conditions.watcher.step)
        self._worked = True
        if not loop.fit(trainer, checkpoint, journal, pace):
            raise self._conditions.stop.error()
        self._conclude(work, title, trainer, labels)

    def _announce(self, title: str, steps: int, cost: float, state: Mapping[str, Any] | None) -> None:
        self._conditions.watcher.stage(title, steps, 0 if state is None else state["step"], cost)
        device = self._conditions.execution.device.type
        if state is not None and not state["done"] and state["device"] != device:
            began = state["device"]
            self._conditions.watcher.note(
                f"note: {title} began on {began}, goes on on {device}: not repeatable bit for bit"
            )

    def _labels(self, work: Work, place: Path, journal: Journal, family: Mapping[str, Work]) -> Store | None:
        """The pseudo labels of a stage: made once by its teacher, then read."""
        wanted = work.stage.labels
        if wanted is None:
            return None
        task, _ = self._tasks[work.seed]
        if not Store.exists(place):
            teacher = family[wanted.by]
            labeler.label(
                self._finished(teacher, task, wanted.copy),
                task,
                self._conditions.execution.device,
                fraction=wanted.fraction,
                per_class=wanted.per_class,
                noise=wanted.noise,
                seed=work.stream_seed,
                provenance=dataclasses.asdict(wanted) | {"teacher": teacher.place, "round": work.stage.round},
            ).save(place)
        labels = Store.load(place)
        if not labels.selected.any():
            raise ConfigError(f"{work.stage.name} keeps no pseudo label at all; set fractions higher")
        if not any(line["kind"] == "labels" for line in journal.read()):
            counts = {"kept": int(labels.selected.sum()), "of": len(labels.selected)}
            journal.write("labels", **counts, coverage=labels.coverage(len(task.classes)))
        return labels

    def _finished(self, work: Work, task: Task, copy: str) -> nn.Module:
        net = finished_net(self.folder.stage(work.place), task.net_spec(self._config.net), copy)
        return net.to(self._conditions.execution.device)

    def _trainer(self, work: Work, steps: int, task: Task, batches: Batches, family: Mapping[str, Work]) -> Trainer:
        if work.stage.start is None:
            net: nn.Module = build.build(task.net_spec(self._config.net), streams.seed_of(work.stream_seed, "net"))
        else:
            net = self._finished(family[work.stage.start], task, "raw")
        stage = work.stage
        execution = self._conditions.execution
        return Trainer([net], stage.objective, stage.schedule, batches, steps, work.stream_seed, execution)

    def _conclude(self, work: Work, title: str, trainer: Trainer, labels: Store | None) -> None:
        """Scores and audit of a finished stage go to the journal, and nowhere else."""
        task, audit = self._tasks[work.seed]
        place = self.folder.stage(work.place)
        seconds = (Checkpoint(place).state() or {})["seconds"]
        steps = trainer.steps
        cost = {"steps": steps, "images": steps * work.stage.schedule.batch, "seconds": seconds}
        # the Oracle was trained on the validation images too
        splits = ("test",) if work.stage.truth == "everything" else ("validation", "test")
        scores = assessment.scores(trainer, task, splits)
        checked = None if labels is None else assessment.pseudo_labels(trainer, task, audit, labels)
        Journal(place / "journal.jsonl").write("round", scores=scores, audit=checked, cost=cost)
        raw, ema = (scores["test"][copy]["accuracy"] for copy in ("raw", "ema"))
        self._conditions.watcher.note(
            f"{title}: test accuracy {raw:.2f} (EMA {ema:.2f}) after {steps} steps, {progress.duration(seconds)}"
        )


def _shared(labeled: LabeledSet, work: Work) -> LabeledSet:
    """The stage's share of the labels; both shares are cut from one shuffled list."""
    if work.stage.share is None:
        return labeled
    order = streams.stream(work.seed, "share").permutation(len(labeled))
    return labeled.take(torch.from_numpy(order[work.stage.share.slice(len(labeled))]))


def _titles(work: Work, jobs: Sequence[tuple[Job, list[Work]]]) -> str:
    """'CL, DMT A0, seed 1': all methods that a stage serves."""
    methods = [catalogue.METHODS[job.method].title for job, works in jobs if work in works]
    return f"{', '.join(methods)} {work.stage.name}, seed {work.seed}"


def _family(work: Work, jobs: Sequence[tuple[Job, list[Work]]]) -> list[Work]:
    """All stages of a plan that holds this one, among them its parents."""
    return next(works for _, works in jobs if work in works)
