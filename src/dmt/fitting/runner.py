"""What a run's folder still lacks, trained stage by stage."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from dmt import files, run_files
from dmt.config import Config
from dmt.core.execution import Execution
from dmt.data.audits import Audit
from dmt.fitting import concluding, jobs_of, orders, samples, teaching, together
from dmt.fitting.conditions import Conditions
from dmt.fitting.features import FeatureMaker
from dmt.fitting.orders import Label, Train
from dmt.fitting.stage_nets import StageNets
from dmt.fitting.teaching import Lesson
from dmt.fitting.together import Nets
from dmt.methods import catalogue
from dmt.models import build
from dmt.pseudo import labeler
from dmt.pseudo.labeler import LabelFolder, Teacher
from dmt.pseudo.store import Store
from dmt.results import guard, reading
from dmt.runs import sharing, starting, trial
from dmt.runs.folder import Folder, Job
from dmt.runs.identity import Work, identify
from dmt.runs.starting import Starts
from dmt.tasks import opening
from dmt.tasks.base import Task
from dmt.training import loop
from dmt.training.checkpoint import Checkpoint
from dmt.training.encoding import FeatureFolder
from dmt.training.journal import Journal
from dmt.types import ProgressCallback


class Runner:
    """Trains what a folder still lacks."""

    def __init__(self, config: Config, folder: Folder, starts: Starts, conditions: Conditions) -> None:
        self._config, self.folder, self._starts = config, folder, starts
        self._conditions = conditions
        self._tasks: dict[int, tuple[Task, Audit[Any]]] = {}
        self._in_features: dict[int, Task] = {}
        self.fingerprint = ""  # of all images and labels, once they are open
        self._skipped: tuple[str, ...] = ()  # files that could not be read
        self._worked = False
        self._jobs: list[tuple[Job, list[Work]]] = []
        self._told: set[tuple[int, tuple[str, ...], str, str, str]] = set()  # what the guard said in this session
        self._said: set[str] = set()  # which rounds ended

    def open(self, seeds: Sequence[int]) -> None:
        """Read the data, split it for every seed, and see that the nets can be built."""
        watcher, where = self._conditions.watcher, self._conditions.data_folder
        opened = opening.read(self._config.data, where, watcher.note, watcher.reading, self.cache)
        self.fingerprint, self._skipped = opened.fingerprint, opened.skipped
        self._tasks = {seed: opened.split(seed) for seed in seeds}
        task = next(iter(self._tasks.values()))[0]
        self.use(self._conditions.execution.for_net(self._config.net, task.pixels))
        trial.compiles(self._conditions.execution)
        for name in dict.fromkeys(map(self._config.net_of, "AB")):
            trial.fits(task, name)
        if self.folder.starts() is None:  # a resumed run may need none of them any more
            for line, start in self._starts.files.items():
                trial.fills(task, self._config.net_of(line), start)
        if starting.alike(self._starts, self._config):
            watcher.note("note: both nets start alike, so they will hardly disagree; consider --set share=0.8")

    @property
    def cache(self) -> Path:
        """Of this process, if there are several."""
        whole, processes = self.folder.path / run_files.CACHE, self._conditions.processes
        return whole if processes is None or processes.leads else whole / f"process-{processes.rank}"

    @property
    def nets(self) -> StageNets:
        """To build and read nets with."""
        return StageNets(self._config, self.folder, self._starts, self._conditions)

    def seen(self, seed: int) -> Task:
        """The task as nets see it: with frozen encoders, in their features."""
        if seed not in self._in_features:
            at, task = self._conditions, self._tasks[seed][0]
            others = tuple(run / run_files.CACHE for run in (self.folder.path, *at.donors))
            folder = FeatureFolder(self.cache, tuple(each for each in others if each != self.cache))
            maker = FeatureMaker(self._config, self._starts, folder, at.execution.device, at.watcher, at.stop)
            self._in_features[seed] = maker.of(task)
        return self._in_features[seed]

    def opened(self, seed: int) -> tuple[Task, Audit[Any]]:
        """The task as nets see it, and its audit."""
        return self.seen(seed), self._tasks[seed][1]

    def use(self, execution: Execution) -> None:
        """Work with other conditions of the device from now on."""
        self._conditions = replace(self._conditions, execution=execution)

    def images(self, seed: int) -> Task:
        """The task in images, however nets see it."""
        return self._tasks[seed][0]

    def adopt(self, config: Config) -> None:
        """Train with other options: of the same data, and of nets with the same encoders."""
        if [config.stores_features(line) for line in "AB"] != [self._config.stores_features(line) for line in "AB"]:
            self._in_features.clear()
        self._config = config

    @property
    def threads_for(self) -> tuple[int, int, int]:
        """The shape of the images that a step sees."""
        return next(iter(self._tasks.values()))[0].net_spec(self._config.net_of("A")).shape

    @property
    def validation_images(self) -> int:
        """How many there are, of all seeds the fewest."""
        return min(len(task.validation) for task, _ in self._tasks.values())

    def run(self, methods: Sequence[str], seeds: Sequence[int], keep: str | None = None) -> None:
        """All methods of a seed, then the next seed. ``keep``: the best or last nets; None for as it was."""
        if self._skipped:
            files.write(
                self.folder.path / run_files.SKIPPED,
                "".join(f"{line}\n" for line in self._skipped).encode(errors="replace"),
            )
        for seed in seeds:
            task, audit = self._tasks[seed]
            self.folder.record_split(seed, task)
            samples.write_images(run_files.samples(self.folder.path, seed), task, audit)
        known = self.folder.jobs()
        keep = keep or next((job.keep for job in known), "last")  # one for the whole run: its jobs are compared
        wanted = [(method, seed) for seed in seeds for method in methods]
        jobs = self._jobs = [self._job(*each, keep) for each in wanted]
        self.folder.add_jobs([*(replace(job, keep=keep) for job in known), *(job for job, _ in jobs)])
        works = list({work.identity: work for _, works in jobs for work in works}.values())
        sharing.take(self.folder, [work.place for work in works], self._conditions.donors)
        self._note_unvouched(works)
        names = {work.identity: jobs_of.titles(work, jobs) for work in works}
        works = [work for work in works if not self._ended_before(work)]
        self._prepare_compiling([work for work in works if not self.folder.finished(work.place)])
        self._conditions.watcher.begin(sum(map(self._whole, works)), sum(map(self._done, works)))
        for work in works:
            if self._ended_before(work):
                self._conditions.watcher.spared(self._whole(work) - self._done(work))
            else:
                self._stage(work, names[work.identity], {w.stage.name: w for w in jobs_of.family(work, jobs)})
                self._measure_pairs([job for job, works in jobs if work == works[-1]])
        self._measure_pairs([job for job, _ in jobs])

    def _note_unvouched(self, works: Sequence[Work]) -> None:
        """Say if files of an older release are read, whose digests nobody knows."""
        old = [work.stage.name for work in works if not Checkpoint(self.folder.stage(work.place)).vouched]
        if old:
            self._conditions.watcher.note(
                f"note: {', '.join(dict.fromkeys(old))} began before runs kept digests of their files: "
                f"damage to what is read of them may go unnoticed"
            )

    def _prepare_compiling(self, works: Sequence[Work]) -> None:
        """Blocks of a large net are compiled if there are steps enough, and a compiler."""
        execution = self._conditions.execution.for_steps(sum(work.steps for work in works))
        if execution.blocks and not trial.can_compile(execution):
            execution = replace(execution, blocks=False)
        self.use(execution)

    def _ended_before(self, work: Work) -> bool:
        """Whether validation ended the rounds of all jobs before this stage; the journals say so."""
        patience = self._config.recipe.stop_rounds
        if patience is None or work.stage.round < patience + 2:  # no plan ends sooner
            return False
        manifest = self.folder.manifest()
        found = [reading.of_job(self.folder, manifest, job) for job, family in self._jobs if work in family]
        if any(work.place not in {stage.place for stage in job.skipped} for job in found):
            return False
        for job in found:
            self._say_once(f"{catalogue.get(job.method).title}, seed {job.seed}: {job.ended}")
        return True

    def _measure_pairs(self, jobs: Sequence[Job]) -> None:
        """Both nets of finished pairs together, if that was not done before."""
        for job in jobs:
            result = reading.of_job(self.folder, self.folder.manifest(), job)
            title = f"{catalogue.get(job.method).title}, seed {job.seed}"
            pairs = list(together.unmeasured(result))
            for nets in pairs:
                pair = Nets(nets, self.seen(job.seed), self._config, self._conditions.execution.device)
                together.measure(pair, self._progress(f"both nets of {title}", in_budget=False)).write()
            if pairs:
                fresh = replace(result)  # what was read before the measuring is not remembered
                self._conditions.watcher.note(f"{title}: {together.told(fresh)}")

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._conditions.watcher.note(text)

    def _job(self, method: str, seed: int, keep: str) -> tuple[Job, list[Work]]:
        plan = catalogue.plan(method, self._config.recipe)
        works = identify(plan, self._config, self._tasks[seed], seed, self._starts.digests)
        outline = [work.outline() for work in works]
        return Job(method, seed, outline, list(plan.results), keep), works

    def _whole(self, work: Work) -> float:
        return work.steps * work.cost + self._labeling(work)

    def _done(self, work: Work) -> float:
        place = self.folder.stage(work.place)
        state = Checkpoint(place).state()
        trained = 0.0 if state is None else state["step"] * work.cost
        return trained + (self._labeling(work) if Store.exists(place) else 0.0)

    def _labeling(self, work: Work) -> float:
        """The part of the work that is its teacher's."""
        if work.stage.labels is None:
            return 0.0
        passes = work.stage.labels.passes * build.forward_share(self._config.net_of(work.stage.labels.line))
        return passes * self._tasks[work.seed][0].images_to_label()

    def _stage(self, work: Work, title: str, family: Mapping[str, Work]) -> None:
        """Label, train, score, audit and judge one stage; each part is skipped if it was done before."""
        journal = Journal(self.folder.stage(work.place) / run_files.JOURNAL)
        if not self.folder.finished(work.place):
            self._learn(work, title, journal, family)
        if all(line["kind"] != "guard" for line in journal.read()):
            journal.write("guard", findings=[asdict(finding) for finding in self._warn(work, title)])

    def _learn(self, work: Work, title: str, journal: Journal, family: Mapping[str, Work]) -> None:
        # every session takes at least one step, however small its budget: repeating it must come to an end
        if self._worked and self._conditions.stop():
            raise self._conditions.stop.error()
        lesson = self._lesson(work, title, journal, family)
        if lesson is None:
            self._train(work, title, None, family)
            return
        with lesson:
            self._warn(work, title)  # before hours go into labels that are no good
            self._train(work, title, lesson, family)

    def _train(self, work: Work, title: str, lesson: Lesson | None, family: Mapping[str, Work]) -> None:
        place = self.folder.stage(work.place)
        checkpoint, journal = Checkpoint(place), Journal(place / run_files.JOURNAL)
        opened, here = self.opened(work.seed), self._conditions
        steps = work.steps if lesson is None else work.stage.steps_over(lesson.store.images)
        pseudo = None if lesson is None else lesson.pseudo
        orders.give(here.processes, Train(work, steps, here.execution))
        orders.hand_out(here.processes, pseudo)
        nets: dict[str, nn.Module] = {line: self.nets.first(work, line, opened[0], family) for line in work.stage.lines}
        trainer = self.nets.trainer(work, steps, opened, pseudo, nets)
        self._announce(title, steps, work.cost, checkpoint.state())
        watcher = here.watcher
        pace = loop.Pace(here.checkpoint_every, here.stops, watcher.step)
        if lesson is not None:
            pace = replace(pace, before_saving=partial(lesson.settle, watcher.note))
        self._worked = True
        try:
            if not loop.fit(trainer, checkpoint, journal, pace):
                raise self._conditions.stop.error()
            trainer.close()
            said = concluding.conclude(work, trainer, lesson, opened, place)
            watcher.note(f"{title}: {said}")
        finally:
            trainer.close()

    def _warn(self, work: Work, title: str) -> list[guard.Finding]:
        """Everything the guard finds in a stage now; what is new is said at once."""
        described = next(job for job, works in self._jobs if work in works)
        job = reading.of_job(self.folder, self.folder.manifest(), described)
        lines = [stage for stage in job.stages if stage.name == work.stage.name]
        found = [finding for line in lines for finding in guard.of_stage(job, line)]
        for finding in found:
            thing = (work.seed, work.stage.lines, finding.kind, finding.about, finding.remedy)
            if thing not in self._told:  # once for a line of nets; the report names all its rounds
                self._told.add(thing)
                self._conditions.watcher.note(f"guard: {title}: {finding}")
        return found

    def _announce(self, title: str, steps: int, cost: float, state: Mapping[str, Any] | None) -> None:
        self._conditions.watcher.stage(title, steps, 0 if state is None else state["step"], cost)
        device = self._conditions.execution.device.type
        if state is not None and not state["done"] and state["device"] != device:
            began = state["device"]
            self._conditions.watcher.note(
                f"note: {title} began on {began}, resumes on {device}: not repeatable bit for bit"
            )

    def _progress(self, title: str, in_budget: bool = True) -> ProgressCallback:
        """Shows how far something other than steps is, and ends it where somebody wants the run to stop."""

        def on_progress(done: int, of: int) -> None:
            self._conditions.watcher.busy(title, done, of)
            stop = self._conditions.stop
            spent = in_budget and self._worked and stop()  # what was done is lost; a budget lets a first step happen
            if spent or stop.asked:
                raise stop.error()

        return on_progress

    def _lesson(self, work: Work, title: str, journal: Journal, family: Mapping[str, Work]) -> Lesson | None:
        """The pseudo labels of a stage: made once by its teacher, then read."""
        wanted = work.stage.labels
        if wanted is None:
            return None
        (task, audit), here = self.opened(work.seed), self._conditions
        place = self.folder.stage(work.place)
        folder = LabelFolder(place, self.cache, self._progress(f"labels for {title}"))
        if Store.exists(place):
            store = labeler.load(task, place)
        else:
            by = family[wanted.by]
            nets = tuple(self.nets.finished(by, task, wanted.line, copy) for copy in wanted.copies)
            orders.give(here.processes, Label(work))
            orders.align_nets(here.processes, nets)
            teacher = Teacher(nets, task, here.execution.device, wanted.seen, here.processes, wanted.whole)
            store = labeler.make(teacher, teaching.wish(work, by), folder, audit)
            here.watcher.worked(self._labeling(work))
        return Lesson.open(store, task, folder, journal)
