"""Training of trials. Those of a grid can be trained at once: each is a run that one worker trains as a whole."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dmt.errors import DivergenceError
from dmt.fitting import folder_policy, run, together
from dmt.results.job_results import JobResult
from dmt.runs import environment
from dmt.runs.progress import Watcher
from dmt.runs.stopping import Stop
from dmt.tuning.search_space import Values
from dmt.tuning.trial_folder import Frame
from dmt.tuning.trial_progress import OfTrial, TrialsAtOnce
from dmt.workers.crew import Crew
from dmt.workers.messages import Here, Order
from dmt.workers.scheduler import Agenda, Scheduler


def train(
    frame: Frame,
    values: Values,
    donors: Sequence[Path],
    folder: Path,
    here: tuple[Watcher, Stop],
    workers: Crew | None = None,
) -> None:
    """Train a trial's run, or what is left of it.

    Args:
        frame: what all trials have in common.
        values: the setting.
        donors: folders of trials whose stages it may share.
        folder: its run folder.
        here: the progress watcher and the stop signal.
        workers: workers that train its stages at once; None for this process alone.
    """
    watcher, stop = here
    run.fit(
        frame.data,
        out=folder,
        method=frame.method,
        seed=frame.seeds,
        settings=frame.settings | values,
        start=frame.start,
        data_folder=frame.data_folder,
        device=frame.device,
        watcher=watcher,
        baseline=False,
        stop=stop,
        donors=donors,
        anyway=frame.anyway,
        folds=False,  # the trials themselves are the search
        jobs=None if workers is None else workers.jobs,
        on=None if workers is None else workers.on,
    )


def complete(job: JobResult) -> bool:
    """Return whether nothing is left to train or to measure; the nets of a pair are measured together last."""
    return job.finished and not any(together.unmeasured(job))


@dataclass(frozen=True)
class TrainTrial(Order):
    """An order to train a trial, or what is left of it.

    Attributes:
        name: name of the trial.
        frame: what all trials have in common.
        values: the setting.
        folder: its run folder.
        donors: folders of finished trials, whose stages it may share.
        threads: most threads that a new run computes with.
        command: the user's command line, for the record.
    """

    name: str
    frame: Frame
    values: Values
    folder: Path
    donors: tuple[Path, ...]
    threads: int
    command: tuple[str, ...]

    @property
    def title(self) -> str:
        return self.name

    def carry_out(self, here: Here) -> None:
        sys.argv[:] = self.command
        frame = replace(self.frame, device=environment.device_of(self.frame.device, here.number))
        with environment.threads(self.threads):
            train(frame, self.values, self.donors, self.folder, (OfTrial(here.watcher, self.name), here.stop))


class TrialAgenda(Agenda):
    """Trials in any order: none depends on another."""

    def __init__(self, trials: Sequence[TrainTrial]) -> None:
        self._waiting = list(trials)
        self.failures: dict[str, str] = {}  # name -> reason

    def ready(self) -> Sequence[Order]:
        return self._waiting

    def begin(self, order: Order) -> None:
        assert isinstance(order, TrainTrial)
        self._waiting.remove(order)

    def done(self, order: Order, result: Any) -> None:
        pass

    def put_back(self, order: Order) -> None:
        assert isinstance(order, TrainTrial)
        self._waiting.append(order)

    def failed(self, order: Order, error: Exception) -> None:
        """Record a trial that diverged, which is a result, and let the others continue; raise any other error."""
        if not isinstance(error, DivergenceError):
            raise error
        self.failures[order.title] = str(error)


@dataclass(frozen=True)
class TrialTraining:
    """Trains several trials at once."""

    frame: Frame
    crew: Crew
    threads: int

    def train(
        self, trials: Mapping[str, tuple[Values, Path]], donors: Sequence[Path], here: tuple[Watcher, Stop]
    ) -> dict[str, str]:
        """Train all trials, and return the reasons of those that failed, by name.

        Args:
            trials: name -> values and folder of the trial.
            donors: folders of finished trials, whose stages may be shared.
            here: the progress watcher and the stop signal.
        """
        watcher, stop = here
        frame = self._absolute()
        finished, command = tuple(each.resolve() for each in donors), tuple(sys.argv)
        orders = [
            TrainTrial(name, frame, values, folder.resolve(), finished, self.threads, command)
            for name, (values, folder) in trials.items()
        ]
        agenda = TrialAgenda(orders)
        with self.crew.started(self.threads, frame.device) as (start, count):
            watching = TrialsAtOnce(watcher, len(orders))
            Scheduler(start, min(count, max(1, len(orders))), watching, stop, lambda *_: None).run(agenda)
        return agenda.failures

    def _absolute(self) -> Frame:
        """Return the frame with absolute paths, since workers may run in another folder, and a worker's device."""
        frame, own = self.frame, folder_policy.own_folder(self.frame.data)
        data = frame.data if own is None else own.resolve()
        starts = {
            line: str(Path(text).resolve()) if Path(text).is_file() else text for line, text in frame.start.items()
        }
        folder, device = str(Path(frame.data_folder).resolve()), self.crew.device(frame.device)
        return replace(frame, data=data, start=starts, data_folder=folder, device=device)
