"""Orders for the workers of a run: to train one stage, or to score both nets of a finished pair together."""

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
"""The key under which a worker keeps its session."""


@dataclass(frozen=True)
class Site:
    """A run as its workers open it; workers on other machines need a shared file system.

    Attributes:
        threads: number of CPU threads of each worker, as when the run was new.
        device: the device as named by the user; with several GPUs, each worker uses another one.
        steps: number of all steps left to train, which decides whether compiling pays off.
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
        """Return the worker's session of this run, which is opened on first use."""
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
        runner.open(self.seeds)  # silent, since the main process has shown all notes about the data
        runner.watched_by(here.watcher)
        here.until_end.enter_context(execution.active())
        session = Session(runner, self.methods, self.seeds, self.keep)
        session.prepare_compiling(self.steps)
        return session


@dataclass(frozen=True)
class SiteOrder(Order):
    """An order within a run.

    Attributes:
        name: title of the order.
        worked: whether something was already done in this session; if not, a budget allows for a first step.
        told: guard findings that were already shown.
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
        """Carry out the order."""


@dataclass(frozen=True)
class TrainStage(SiteOrder):
    """Order to train a stage, or what is left of it; ``place`` is the name of its folder."""

    place: str

    def act(self, session: Session) -> None:
        session.stage(next(work for work in session.works if work.place == self.place))


@dataclass(frozen=True)
class MeasurePair(SiteOrder):
    """Order to score both nets of a job together."""

    method: str
    seed: int

    def act(self, session: Session) -> None:
        session.measure_pairs([job for job, _ in session.jobs if (job.method, job.seed) == (self.method, self.seed)])
