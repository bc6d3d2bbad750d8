"""Combination of the progress of several workers, each with its own stage, for one watcher."""

from dataclasses import dataclass

from dmt.runs.progress import Watcher
from dmt.workers.messages import Said


@dataclass(frozen=True)
class Stage:
    """The stage that a worker trains: its title, steps, steps done, and work per step."""

    title: str
    steps: int
    done: int
    work: float


class SeveralAtOnce:
    """Passes the messages of several workers on to one watcher."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._stages: dict[int, Stage] = {}
        self._undone: dict[str, int] = {}  # steps already counted of stages whose worker was lost, by title
        self._speaker: int | None = None

    def hear(self, worker: int, said: Said) -> None:
        """Pass on a message of a worker."""
        if said.what == "stage":
            self._begin(worker, Stage(*said.words))
        elif said.what == "step":
            self._step(worker, *said.words)
        elif said.what == "note":
            self._watcher.note(*said.words)
        else:
            self._watcher.turn(worker)
            self._speaker = None  # so that before the next step, its worker's stage is announced again
            getattr(self._watcher, said.what)(*said.words)

    def note(self, text: str) -> None:
        """Pass on a note."""
        self._watcher.note(text)

    def lost(self, worker: int) -> None:
        """Remember the steps of a lost worker: those after its last checkpoint must not be counted twice."""
        stage = self._stages.pop(worker, None)
        if stage is not None:
            self._undone[stage.title] = stage.done

    def _begin(self, worker: int, stage: Stage) -> None:
        self._stages[worker] = stage
        self._speaker = worker
        again = self._undone.pop(stage.title, stage.done) - stage.done
        self._watcher.worked(-again * stage.work)
        self._watcher.turn(worker)
        self._watcher.stage(stage.title, stage.steps, stage.done, stage.work)

    def _step(self, worker: int, done: int) -> None:
        stage = self._stages[worker]
        if self._speaker != worker:
            self._speaker = worker
            self._watcher.turn(worker)
            self._watcher.stage(stage.title, stage.steps, stage.done, stage.work)
        self._watcher.step(done)
        self._stages[worker] = Stage(stage.title, stage.steps, done, stage.work)
