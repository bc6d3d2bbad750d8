"""Conditions under which a run trains: device, paths, progress, stopping and processes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dmt.core.execution import Execution
from dmt.core.processes import Processes
from dmt.runs import progress
from dmt.runs.stopping import Stop
from dmt.workers.crew import Crew


@dataclass(frozen=True)
class Conditions:
    """Where and how a run trains. None of this enters a stage's identity, so a run can be resumed elsewhere.

    A GPU rounds differently and draws other augmentations than a CPU, but either result is valid.

    Attributes:
        data_folder: where data sets are, or the user's folder.
        checkpoint_every: seconds between checkpoints within a stage.
        donors: run folders whose finished stages may be reused.
        processes: processes that train each stage together; None for this one alone.
        worker: number of this worker among those that train different stages; None in the main process.
        crew: these workers; None if this process trains all stages.
        asked: the device as named by the user, and whether steps are fast.
    """

    data_folder: Path
    execution: Execution
    checkpoint_every: float
    stop: Stop
    watcher: progress.Watcher
    donors: Sequence[Path] = ()
    processes: Processes | None = None
    worker: int | None = None
    crew: Crew | None = None
    asked: tuple[str, bool | None] = ("auto", None)

    def stops(self) -> bool:
        """Return whether to stop, for a reason of any process; all processes call this after every step."""
        if self.processes is None:
            return self.stop()
        return self.stop.adopt(self.processes.largest(self.stop.reason))
