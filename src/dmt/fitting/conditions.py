"""Where and how a run works."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dmt.core.execution import Execution
from dmt.core.processes import Processes
from dmt.runs import progress
from dmt.runs.stopping import Stop


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

    def stops(self) -> bool:
        """Asked after every step, by all processes at once: a reason of one is a reason for all."""
        if self.processes is None:
            return self.stop()
        return self.stop.adopt(self.processes.largest(self.stop.reason))
