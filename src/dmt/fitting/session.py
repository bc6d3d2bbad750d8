"""One session of a run: trains those stages of its jobs that are missing, one after the other."""

from collections.abc import Sequence
from dataclasses import asdict, replace

from dmt import files, run_files
from dmt.fitting import jobs_of, samples, together
from dmt.fitting.runner import Runner
from dmt.fitting.together import Nets
from dmt.methods import catalogue
from dmt.pseudo.store import Store
from dmt.results import guard, reading
from dmt.runs import sharing, trial
from dmt.runs.folder import Job
from dmt.runs.identity import Work, identify
from dmt.runs.progress import Watcher
from dmt.training.checkpoint import Checkpoint
from dmt.training.journal import Journal

Told = frozenset[tuple[int, tuple[str, ...], str, str, str]]
"""Guard findings that were shown: seed, lines, kind, subject and remedy of each."""


class Session:
    """The requested jobs of a run, methods × seeds.

    Attributes:
        jobs: the jobs with their stages: all methods of a seed, then the next seed.
        works: the stages of all jobs, each once.
        told: guard findings that were shown in this session.
    """

    def __init__(self, runner: Runner, methods: Sequence[str], seeds: Sequence[int], keep: str | None = None) -> None:
        """``keep``: which nets to use, the "best" or the "last"; None to leave it unchanged."""
        self.runner, self.methods, self.seeds = runner, tuple(methods), tuple(seeds)
        self._folder, self._known = runner.folder, runner.folder.jobs()
        # the same for the whole run, since its jobs are compared
        self.keep = keep or next((job.keep for job in self._known), "last")
        self.jobs = [self._job(method, seed) for seed in seeds for method in methods]
        self.works = list({work.identity: work for _, works in self.jobs for work in works}.values())
        self.told: Told = frozenset()
        self._said: set[str] = set()  # messages about rounds that validation ended

    @property
    def _watcher(self) -> Watcher:
        return self.runner.conditions.watcher

    def _job(self, method: str, seed: int) -> tuple[Job, list[Work]]:
        config, opened = self.runner.config, (self.runner.images(seed), self.runner.audit(seed))
        plan = catalogue.plan(method, config.recipe)
        works = identify(plan, config, opened, seed, self.runner.starts.digests)
        outline = [work.outline() for work in works]
        return Job(method, seed, outline, list(plan.results), self.keep), works

    def begin(self) -> list[Work]:
        """Record the jobs and take over finished stages of donors; return the stages that validation has not ended."""
        if self.runner.skipped:
            listed = "".join(f"{line}\n" for line in self.runner.skipped)
            files.write(self._folder.path / run_files.SKIPPED, listed.encode(errors="replace"))
        for seed in self.seeds:
            task = self.runner.images(seed)
            self._folder.record_split(seed, task)
            samples.write_images(run_files.samples(self._folder.path, seed), task, self.runner.audit(seed))
        before = [replace(job, keep=self.keep) for job in self._known]
        self._folder.add_jobs([*before, *(job for job, _ in self.jobs)])
        sharing.take(self._folder, [work.place for work in self.works], self.runner.conditions.donors)
        self._note_unvouched()
        works = [work for work in self.works if not self.ended_before(work)]
        self.prepare_compiling(sum(work.steps for work in works if not self._folder.finished(work.place)))
        self._note_done(works)
        self._watcher.begin(sum(map(self._whole, works)), sum(map(self._done, works)))
        return works

    def run(self) -> None:
        """Train and measure everything in this process."""
        for work in self.begin():
            if self.ended_before(work):
                self.spare(work)
            else:
                self.stage(work)
                self.measure_pairs([job for job, works in self.jobs if work == works[-1]])
        self.measure_pairs([job for job, _ in self.jobs])

    def title(self, work: Work) -> str:
        """Return the title of a stage: methods, stage and seed."""
        return jobs_of.titles(work, self.jobs)

    def family(self, work: Work) -> dict[str, Work]:
        """Return all stages of a plan that contains this one, by name."""
        return {each.stage.name: each for each in jobs_of.family(work, self.jobs)}

    def finished(self, work: Work) -> bool:
        """Return whether nothing of a stage is left to do, including the guard."""
        journal = Journal(self._folder.stage(work.place) / run_files.JOURNAL)
        return self._folder.finished(work.place) and any(line["kind"] == "guard" for line in journal.read())

    def stage(self, work: Work) -> None:
        """Label, train, score and audit one stage and run the guard; each part is skipped if it was done before."""
        title, journal = self.title(work), Journal(self._folder.stage(work.place) / run_files.JOURNAL)
        with self._folder.stage_claimed(work.place):
            if not self._folder.finished(work.place):
                self.runner.learn(work, title, self.family(work), lambda: self._warn(work, title))
            if all(line["kind"] != "guard" for line in journal.read()):
                journal.write("guard", findings=[asdict(finding) for finding in self._warn(work, title)])

    def spare(self, work: Work) -> None:
        """Tell the watcher that a stage will not be trained."""
        self._watcher.spared(self._whole(work) - self._done(work))

    def _note_done(self, works: Sequence[Work]) -> None:
        """Tell the user what a repeated command will not train again."""
        done = sum(self._folder.finished(work.place) for work in works)
        if done:
            left = "nothing is left to train" if done == len(works) else "the run goes on with the others"
            self._watcher.note(f"{done} of {len(works)} stages are finished: {left}")

    def _note_unvouched(self) -> None:
        """Tell the user if the run has files of an older release, which stored no digests."""
        old = [work.stage.name for work in self.works if not Checkpoint(self._folder.stage(work.place)).vouched]
        if old:
            self._watcher.note(
                f"note: {', '.join(dict.fromkeys(old))} began before runs kept digests of their files: "
                f"damage to what is read of them may go unnoticed"
            )

    def prepare_compiling(self, steps: int) -> None:
        """Compile the blocks of a large net if the steps are enough for it to pay off, and there is a compiler."""
        execution = self.runner.conditions.execution.for_steps(steps)
        if execution.blocks and not trial.can_compile(execution):
            execution = replace(execution, blocks=False)
        self.runner.use(execution)

    def ended_before(self, work: Work) -> bool:
        """Return whether, according to the journals, validation ended the rounds of all jobs before this stage."""
        patience = self.runner.config.recipe.stop_rounds
        if patience is None or work.stage.round < patience + 2:  # rounds cannot end earlier
            return False
        manifest = self._folder.manifest()
        found = [reading.of_job(self._folder, manifest, job) for job, family in self.jobs if work in family]
        if any(work.place not in {stage.place for stage in job.skipped} for job in found):
            return False
        for job in found:
            self._say_once(f"{catalogue.get(job.method).title}, seed {job.seed}: {job.ended}")
        return True

    def measure_pairs(self, jobs: Sequence[Job]) -> None:
        """Score both nets of finished pairs together, if that was not done before."""
        for job in jobs:
            result = reading.of_job(self._folder, self._folder.manifest(), job)
            title = f"{catalogue.get(job.method).title}, seed {job.seed}"
            pairs = list(together.unmeasured(result))
            for nets in pairs:
                device = self.runner.conditions.execution.device
                pair = Nets(nets, self.runner.seen(job.seed), self.runner.config, device)
                together.measure(pair, self.runner.progress(f"both nets of {title}", in_budget=False)).write()
            if pairs:
                fresh = replace(result)  # without the cached properties that were read before measuring
                self._watcher.note(f"{title}: {together.told(fresh)}")

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._watcher.note(text)

    def _whole(self, work: Work) -> float:
        return work.steps * work.cost + self.runner.labeling(work)

    def _done(self, work: Work) -> float:
        place = self._folder.stage(work.place)
        state = Checkpoint(place).state()
        trained = 0.0 if state is None else state["step"] * work.cost
        return trained + (self.runner.labeling(work) if Store.exists(place) else 0.0)

    def _warn(self, work: Work, title: str) -> list[guard.Finding]:
        """Return all current guard findings about a stage, and show the new ones."""
        described = next(job for job, works in self.jobs if work in works)
        job = reading.of_job(self._folder, self._folder.manifest(), described)
        lines = [stage for stage in job.stages if stage.name == work.stage.name]
        found = [finding for line in lines for finding in guard.of_stage(job, line)]
        for finding in found:
            thing = (work.seed, work.stage.lines, finding.kind, finding.about, finding.remedy)
            if thing not in self.told:  # shown once per line of nets; the report names all its rounds
                self.told |= {thing}
                self._watcher.note(f"guard: {title}: {finding}")
        return found
