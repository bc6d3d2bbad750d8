"""A run with its data, which labels, trains and scores one stage at a time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from dmt import run_files
from dmt.config import Config
from dmt.core import labeling_views
from dmt.core.execution import Execution
from dmt.data.audits import Audit
from dmt.errors import OtherClassesError, RunError
from dmt.fitting import concluding, orders, teaching
from dmt.fitting.conditions import Conditions
from dmt.fitting.features import FeatureMaker
from dmt.fitting.orders import Label, Train
from dmt.fitting.stage_nets import StageNets
from dmt.fitting.teaching import Lesson
from dmt.methods import catalogue
from dmt.models import build
from dmt.pseudo import labeler
from dmt.pseudo.labeler import LabelFolder, Teacher
from dmt.pseudo.store import Store
from dmt.runs import starting, trial
from dmt.runs.folder import Folder
from dmt.runs.identity import Work
from dmt.runs.progress import Watcher
from dmt.runs.starting import Starts
from dmt.tasks import opening
from dmt.tasks.base import Task
from dmt.training import loop
from dmt.training.checkpoint import Checkpoint
from dmt.training.encoding import FeatureFolder
from dmt.training.journal import Journal
from dmt.training.trainer import Trainer
from dmt.types import ProgressCallback


class Runner:
    """Holds the data of a run and trains its stages.

    Attributes:
        config: all options; `adopt` replaces them.
        folder: the run's folder.
        starts: what fresh nets start from.
        conditions: the current conditions of training; `use` and `watched_by` replace parts of them.
        fingerprint: a hash of all images and labels, once they are open.
        skipped: files that could not be read.
        worked: whether a step was taken in this session.
    """

    def __init__(self, config: Config, folder: Folder, starts: Starts, conditions: Conditions) -> None:
        self.config, self.folder, self.starts = config, folder, starts
        self.conditions = conditions
        self._tasks: dict[int, tuple[Task, Audit[Any]]] = {}
        self._in_features: dict[int, Task] = {}
        self.fingerprint = ""
        self.skipped: tuple[str, ...] = ()
        self.worked = False

    def open(self, seeds: Sequence[int]) -> None:
        """Read the data, split it for every seed, and test that the nets can be built and compiled."""
        watcher, where = self.conditions.watcher, self.conditions.data_folder
        try:
            opened = opening.read(self.config.data, where, watcher.note, watcher.reading, self.cache)
        except OtherClassesError as error:
            raise RunError(f"{self.folder.path}: {error}; give another --out") from error
        self.fingerprint, self.skipped = opened.fingerprint, opened.skipped
        self._tasks = {seed: opened.split(seed) for seed in seeds}
        task = next(iter(self._tasks.values()))[0]
        self.use(self.conditions.execution.for_net(self.config.net, task.pixels))
        trial.compiles(self.conditions.execution)
        for name, line in {self.config.net_of(line): line for line in "AB"}.items():
            trial.fits(task, name)
            if labeling_views.DROPOUT in self.config.recipe.labeling_views:
                trial.drops(task, name)
            if self.config.recipe.batchnorm == "reestimate" and not self.config.stores_features(line):
                trial.reestimates(task, name, self.conditions.execution.device)
        if self.folder.starts() is None:  # a resumed run may no longer need any of them
            for line, start in self.starts.files.items():
                trial.fills(task, self.config.net_of(line), start)
        if starting.alike(self.starts, self.config):
            watcher.note(
                "note: both nets start from the same weights, so they will hardly disagree; consider --set share=0.8"
            )

    def require_usable(self, methods: Sequence[str]) -> None:
        """Refuse methods that need more than images and nets allow, before stages that need less are trained."""
        task = next(iter(self._tasks.values()))[0]
        plans = {method: catalogue.plan(method, self.config.recipe) for method in methods}
        trial.shows(task, (stage.objective for plan in plans.values() for stage in plan.stages))
        for method, plan in plans.items():
            trial.provides(task, self.config.net_of, plan.stages, catalogue.get(method).title)

    @property
    def cache(self) -> Path:
        """The cache folder of this process."""
        whole, at = self.folder.path / run_files.CACHE, self.conditions
        if at.worker is not None:
            return whole / f"worker-{at.worker}"
        return whole if at.processes is None or at.processes.leads else whole / f"process-{at.processes.rank}"

    @property
    def nets(self) -> StageNets:
        """Builder and reader of the run's nets."""
        return StageNets(self.config, self.folder, self.starts, self.conditions)

    def seen(self, seed: int) -> Task:
        """Return the task as nets see it: as stored features if their encoders are frozen, else as images."""
        if seed not in self._in_features:
            at, task = self.conditions, self._tasks[seed][0]
            others = tuple(run / run_files.CACHE for run in (self.folder.path, *at.donors))
            folder = FeatureFolder(self.cache, tuple(each for each in others if each != self.cache))
            maker = FeatureMaker(self.config, self.starts, folder, at.execution.device, at.watcher, at.stop)
            self._in_features[seed] = maker.of(task)
        return self._in_features[seed]

    def opened(self, seed: int) -> tuple[Task, Audit[Any]]:
        """Return the task as nets see it, and its audit."""
        return self.seen(seed), self._tasks[seed][1]

    def use(self, execution: Execution) -> None:
        """Replace the execution from now on."""
        self.conditions = replace(self.conditions, execution=execution)

    def watched_by(self, watcher: Watcher) -> None:
        """Replace the watcher from now on."""
        self.conditions = replace(self.conditions, watcher=watcher)

    def images(self, seed: int) -> Task:
        """Return the task as images, even if nets see stored features."""
        return self._tasks[seed][0]

    def audit(self, seed: int) -> Audit[Any]:
        """Return the audit of pseudo labels for a seed."""
        return self._tasks[seed][1]

    def adopt(self, config: Config) -> None:
        """Replace the options; data and encoders must stay the same."""
        if [config.stores_features(line) for line in "AB"] != [self.config.stores_features(line) for line in "AB"]:
            self._in_features.clear()
        self.config = config

    @property
    def threads_for(self) -> tuple[int, int, int]:
        """The shape (C, H, W) of the images in a step, by which the number of threads is chosen."""
        return next(iter(self._tasks.values()))[0].net_spec(self.config.net_of("A")).shape

    @property
    def validation_images(self) -> int:
        """The smallest number of validation images over all seeds."""
        return min(len(task.validation) for task, _ in self._tasks.values())

    def labeling(self, work: Work) -> float:
        """Return the cost of the teacher's labeling for a stage, in training passes over an image."""
        if work.stage.labels is None:
            return 0.0
        passes = work.stage.labels.passes * build.forward_share(self.config.net_of(work.stage.labels.line))
        return passes * self._tasks[work.seed][0].images_to_label()

    def learn(self, work: Work, title: str, family: Mapping[str, Work], warn: Callable[[], object]) -> None:
        """Label, train, score and audit one stage; each part is skipped if it was done before.

        Args:
            family: all stages of a plan that contains this one, by name.
            warn: is called once there are pseudo labels, so that bad ones are noticed before hours of training.
        """
        # every session takes at least one step, however small its budget, so that repeated sessions finish
        if self.worked and self.conditions.stop():
            raise self.conditions.stop.error()
        lesson = self._lesson(work, title, family)
        if lesson is None:
            self._train(work, title, None, family)
            return
        with lesson:
            warn()
            self._train(work, title, lesson, family)

    def _train(self, work: Work, title: str, lesson: Lesson | None, family: Mapping[str, Work]) -> None:
        place = self.folder.stage(work.place)
        checkpoint, journal = Checkpoint(place), Journal(place / run_files.JOURNAL)
        opened, here = self.opened(work.seed), self.conditions
        steps = work.steps if lesson is None else work.stage.steps_over(lesson.store.images)
        pseudo = None if lesson is None else lesson.pseudo
        orders.give(here.processes, Train(work, steps, here.execution))
        orders.hand_out(here.processes, pseudo)
        nets: dict[str, nn.Module] = {line: self.nets.first(work, line, opened[0], family) for line in work.stage.lines}
        trainer = self.nets.trainer(work, steps, opened, pseudo, nets)
        self._announce(title, trainer, work.cost, checkpoint.state())
        watcher = here.watcher
        pace = loop.Pace(here.checkpoint_every, here.stops, watcher.step)
        if lesson is not None:
            pace = replace(pace, before_saving=partial(lesson.settle, watcher.note))
        self.worked = True
        try:
            if not loop.fit(trainer, checkpoint, journal, pace):
                raise self.conditions.stop.error()
            trainer.close()
            said = concluding.conclude(work, trainer, lesson, opened, place)
            watcher.note(f"{title}: {said}")
        finally:
            trainer.close()

    def _announce(self, title: str, trainer: Trainer, cost: float, state: Mapping[str, Any] | None) -> None:
        self.conditions.watcher.stage(title, trainer.steps, 0 if state is None else state["step"], cost)
        if state is None or state["done"]:
            return
        device, engine = trainer.device.type, trainer.engine
        changed = None
        if state["device"] != device:
            changed = f"began on {state['device']}, resumes on {device}"
        elif engine is not None and state.get("engine", engine) != engine:  # not recorded in older checkpoints
            changed = f"began with {state['engine']} for its encoder, resumes with {engine}"
        if changed is not None:
            self.conditions.watcher.note(f"note: {title} {changed}: not repeatable bit for bit")

    def progress(self, title: str, in_budget: bool = True) -> ProgressCallback:
        """Return a callback that shows progress of work other than steps, and raises if the run is to stop.

        Args:
            in_budget: whether the end of the budget stops the work, too, once a step was taken in this session.
        """

        def on_progress(done: int, of: int) -> None:
            self.conditions.watcher.busy(title, done, of)
            stop = self.conditions.stop
            spent = in_budget and self.worked and stop()  # unfinished work is lost; a budget allows for a first step
            if spent or stop.asked:
                raise stop.error()

        return on_progress

    def _lesson(self, work: Work, title: str, family: Mapping[str, Work]) -> Lesson | None:
        """Return the pseudo labels of a stage, made by its teacher if they do not exist yet; None if it needs none."""
        wanted = work.stage.labels
        if wanted is None:
            return None
        (task, audit), here = self.opened(work.seed), self.conditions
        place = self.folder.stage(work.place)
        folder = LabelFolder(place, self.cache, self.progress(f"labels for {title}"))
        if Store.exists(place):
            store = labeler.load(task, place)
        else:
            by = [family[name] for name in wanted.teachers]
            nets = tuple(self.nets.finished(each, task, wanted.line, copy) for each in by for copy in wanted.copies)
            orders.give(here.processes, Label(work))
            orders.align_nets(here.processes, nets)
            teacher = Teacher(nets, task, here.execution.device, wanted.seen, here.processes, wanted.whole)
            store = labeler.make(teacher, teaching.wish(work, by[0]), folder, audit)
            here.watcher.worked(self.labeling(work))
        return Lesson.open(store, task, folder, Journal(place / run_files.JOURNAL))
