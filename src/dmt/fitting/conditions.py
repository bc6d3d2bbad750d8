"""Where and how a run works."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dmt.core.execution import Execution
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
