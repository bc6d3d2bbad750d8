"""Training of independent stages of a run at the same time, by several workers."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dmt.errors import ConfigError
from dmt.fitting import together
from dmt.fitting.session import Session
from dmt.fitting.stage_orders import MeasurePair, Site, SiteOrder, TrainStage
from dmt.models import registered
from dmt.results import reading
from dmt.runs import environment
from dmt.runs.folder import Job
from dmt.runs.identity import Work
from dmt.runs.starting import Starts
from dmt.workers.crew import Crew
from dmt.workers.messages import Order
from dmt.workers.scheduler import Agenda, Scheduler


class StageAgenda(Agenda):
    """Orders for the stages of a session, each after its parents, and for pairs of nets once their job is finished."""

    def __init__(self, session: Session, works: Sequence[Work], site: Site) -> None:
        self._session, self._site = session, site
        self._waiting = {work.place: work for work in works if not session.finished(work)}
        self._settled = {work.place for work in session.works} - self._waiting.keys()
        self._after = {work.place: _parents(session, work) for work in self._waiting.values()}
        self._unmeasured = [job for job, _ in session.jobs]
        self._needed: set[str] = set()  # places of stages that have to be trained, titles of pairs to score
        self._begun: dict[str, SiteOrder] = {}  # by title
        self._worked = False

    def ready(self) -> Sequence[Order]:
        self._settle_ended()
        free = [work for work in self._waiting.values() if self._after[work.place] <= self._settled]
        stages: list[SiteOrder] = [
            TrainStage(self._site, self._session.title(work), self._worked, self._session.told, work.place)
            for work in free
        ]
        return [order for order in (*self._pairs(), *stages) if order.title not in self._begun]

    def _settle_ended(self) -> None:
        """Treat stages that validation made unnecessary as done, so that stages after them can be skipped, too."""
        for place, work in list(self._waiting.items()):
            if place in self._needed or not self._after[place] <= self._settled:
                continue
            if self._session.ended_before(work):
                self._session.spare(work)
                self._settled.add(place)
                del self._waiting[place]
            else:
                self._needed.add(place)

    def _pairs(self) -> list[SiteOrder]:
        """Return orders to score pairs of finished jobs, one at a time per seed, since jobs may share a pair."""
        found: dict[int, SiteOrder] = {}
        for job, works in self._session.jobs:
            settled = all(work.place in self._settled for work in works)
            if job not in self._unmeasured or job.seed in found or not settled:
                continue
            title = f"both nets of {job.method}, seed {job.seed}"
            if title in self._needed or self._has_pairs(job):
                self._needed.add(title)
                order = MeasurePair(self._site, title, self._worked, self._session.told, job.method, job.seed)
                found[job.seed] = order
            else:
                self._unmeasured.remove(job)
        return list(found.values())

    def _has_pairs(self, job: Job) -> bool:
        folder = self._session.runner.folder
        return any(together.unmeasured(reading.of_job(folder, folder.manifest(), job)))

    def begin(self, order: Order) -> None:
        assert isinstance(order, SiteOrder)
        self._begun[order.title] = order

    def done(self, order: Order, result: Any) -> None:
        del self._begun[order.title]
        self._worked = True
        self._session.told |= result
        if isinstance(order, TrainStage):
            del self._waiting[order.place]
            self._settled.add(order.place)
        elif isinstance(order, MeasurePair):
            self._unmeasured = [job for job in self._unmeasured if (job.method, job.seed) != (order.method, order.seed)]

    def put_back(self, order: Order) -> None:
        del self._begun[order.title]


def run(session: Session, crew: Crew, threads: int, device: tuple[str, bool | None]) -> None:
    """Have workers carry out everything that a session has to do.

    Args:
        threads: number of CPU threads of each worker.
        device: the device as named by the user, and whether steps are fast.
    """
    runner, (name, fast) = session.runner, device
    _require_known_nets(session)
    works = session.begin()
    unfinished = [work for work in works if not runner.folder.finished(work.place)]
    for seed in dict.fromkeys(work.seed for work in unfinished):
        runner.seen(seed)  # compute stored features once, for all workers
    at = runner.conditions
    site = Site(
        runner.config,
        _absolute(runner.starts),
        runner.folder.path.resolve(),
        at.data_folder.resolve(),
        session.methods,
        session.seeds,
        session.keep,
        threads,
        crew.device(name),
        fast,
        at.checkpoint_every,
        sum(work.steps for work in unfinished),
    )

    def log(number: int, found: dict[str, Any]) -> None:
        if crew.address is not None:  # the worker may be on another machine
            runner.folder.log_session(found | {"worker": number, "command": environment.command()})

    with crew.started(threads, name) as (start, count):
        _note_cores(session, crew, count * threads)
        Scheduler(start, count, at.watcher, at.stop, log).run(StageAgenda(session, works, site))


def _parents(session: Session, work: Work) -> set[str]:
    """Return the places of the stages that a stage waits for: its parents and, with stop_rounds, all earlier rounds."""
    family = session.family(work)
    found = {family[name].place for name in work.stage.parents}
    if session.runner.config.recipe.stop_rounds is not None:
        jobs = [works for _, works in session.jobs if work in works]
        found |= {each.place for works in jobs for each in works if each.stage.round < work.stage.round}
    return found


def _require_known_nets(session: Session) -> None:
    """Refuse user-defined nets, which are registered in this process only."""
    own = [net for net in map(session.runner.config.net_of, "AB") if net in registered.OWN]
    if own:
        raise ConfigError(f"net '{own[0]}' is known to this process only; train it with jobs=1")


def _note_cores(session: Session, crew: Crew, threads: int) -> None:
    """Tell the user if workers on this machine compete for its cores."""
    cores = os.cpu_count() or 1
    on_cpu = not session.runner.conditions.execution.on_cuda
    if crew.address is None and on_cpu and threads > cores:
        session.runner.conditions.watcher.note(
            f"note: up to {threads} threads share {cores} cores; a new run begun with OMP_NUM_THREADS=1 has one a job"
        )


def _absolute(starts: Starts) -> Starts:
    """Make the paths of starts absolute, since workers may run in another folder."""
    files = {
        line: start if start.path is None else replace(start, path=start.path.resolve())
        for line, start in starts.files.items()
    }
    return replace(starts, files=files)
