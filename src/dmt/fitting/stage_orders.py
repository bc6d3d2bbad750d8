"""What workers of a run are handed: one stage to train, or the two nets of a finished pair to measure."""

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path

from dmt.config import Config
from dmt.fitting.conditions import Conditions
from dmt.fitting.runner import Runner
from dmt.fitting.session import Session, Told
from dmt.runs import environment
from dmt.runs.folder import Folder
from dmt.runs.progress import Silent
from dmt.runs.starting import Starts
from dmt.workers.messages import Here, Order

SESSION = "session"
"""What a worker keeps it under."""


@dataclass(frozen=True)
class Site:
    """A run as its workers find it; of other machines, in a folder that all of them share.

    Attributes:
        threads: that each worker computes with, as the run did when it was new.
        device: as a user names it; of several GPUs each worker takes another one.
        steps: of all that is left to train: they decide whether compiling is worth it.
    """

    config: Config
    starts: Starts
    run: Path
    data_folder: Path
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    keep: str
    threads: int
    device: str
    fast: bool | None
    checkpoint_every: float
    steps: int

    def session(self, here: Here) -> Session:
        """The same in a worker, with the data read."""
        if SESSION not in here.kept:
            here.until_end.enter_context(environment.threads(self.threads))
            here.kept[SESSION] = self._open(here)
        session: Session = here.kept[SESSION]
        return session

    def _open(self, here: Here) -> Session:
        execution = environment.pick_execution(environment.device_of(self.device, here.number), self.fast)
        if not execution.on_cuda:
            environment.keep_freed_memory()
        conditions = Conditions(
            self.data_folder, execution, self.checkpoint_every, here.stop, Silent(), worker=here.number
        )
        runner = Runner(self.config, Folder(self.run), self.starts, conditions)
        runner.open(self.seeds)  # silently: what there is to say of the data is said already
        runner.watched_by(here.watcher)
        here.until_end.enter_context(execution.active())
        session = Session(runner, self.methods, self.seeds, self.keep)
        session.prepare_compiling(self.steps)
        return session


@dataclass(frozen=True)
class SiteOrder(Order):
    """Something to do in a run.

    Attributes:
        worked: whether something was done in this session already; if not, a budget lets a first step happen.
        told: what the guard said already.
    """

    site: Site
    name: str
    worked: bool
    told: Told

    @property
    def title(self) -> str:
        return self.name

    def carry_out(self, here: Here) -> Told:
        session = self.site.session(here)
        session.told |= self.told
        session.runner.worked |= self.worked
        self.act(session)
        return session.told

    @abstractmethod
    def act(self, session: Session) -> None:
        """Do it."""


@dataclass(frozen=True)
class TrainStage(SiteOrder):
    """Train a stage, or what is left of it."""

    place: str

    def act(self, session: Session) -> None:
        session.stage(next(work for work in session.works if work.place == self.place))


@dataclass(frozen=True)
class MeasurePair(SiteOrder):
    """Measure both nets of a job together."""

    method: str
    seed: int

    def act(self, session: Session) -> None:
        session.measure_pairs([job for job, _ in session.jobs if (job.method, job.seed) == (self.method, self.seed)])
