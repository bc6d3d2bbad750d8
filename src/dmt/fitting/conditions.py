"""Where and how a run works."""

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
    """Where and how a run works. None of this enters an identity: a run may move and be resumed elsewhere.

    A GPU rounds differently and draws other augmentations than a CPU; each is as valid as the other.
    """

    data_folder: Path
    execution: Execution
    checkpoint_every: float
    stop: Stop
    watcher: progress.Watcher
    donors: Sequence[Path] = ()
    processes: Processes | None = None
    worker: int | None = None  # which of several that train different stages; None for the process that runs the run
    crew: Crew | None = None  # those workers; None if this process trains all stages
    asked: tuple[str, bool | None] = ("auto", None)  # the device as a user names it, and whether steps are fast

    def stops(self) -> bool:
        """Asked after every step, by all processes at once: a reason of one is a reason for all."""
        if self.processes is None:
            return self.stop()
        return self.stop.adopt(self.processes.largest(self.stop.reason))
