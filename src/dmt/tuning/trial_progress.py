"""Progress of a tuning: one ETA over all trials, and no test scores."""

from dmt.runs import progress

WORTH = ("note:", "skipped")
"""Beginnings of those notes of a run that a tuning passes on. All others are known already, or give test scores."""


class Trials(progress.Watcher):
    """Reports the runs of the trials, which come one after another, to a watcher as one whole."""

    def __init__(self, watcher: progress.Watcher, trials: int) -> None:
        self._watcher, self._trials = watcher, trials
        self._number, self._name, self._past = 0, "", 0.0
        self._total = 0.0  # work of the present trial
        self._said: set[str] = set()

    def trial(self, name: str) -> None:
        """Begin the next trial."""
        self._past, self._total = self._past + self._total, 0.0
        self._number, self._name = self._number + 1, name

    def begin(self, total: float, done: float) -> None:
        """Begin a trial's run. Each trial to come is assumed to take as much work as is left of this one."""
        self._total = total
        coming = max(0, self._trials - self._number) * (total - done)
        self._watcher.begin(self._past + total + coming, self._past + done)

    def stage(self, title: str, steps: int, done: int, work: float) -> None:
        self._watcher.stage(f"{self._number} of {self._trials} ({self._name}): {title}", steps, done, work)

    def turn(self, worker: int) -> None:
        self._watcher.turn(worker)

    def step(self, done: int) -> None:
        self._watcher.step(done)

    def worked(self, work: float) -> None:
        self._watcher.worked(work)

    def spared(self, work: float) -> None:
        self._total -= work
        self._watcher.spared(work)

    def busy(self, title: str, done: int, of: int) -> None:
        self._watcher.busy(title, done, of)

    def note(self, text: str) -> None:
        """Pass on a note of a run once, if it concerns the tuning."""
        if text.startswith(WORTH) and text not in self._said:
            self._said.add(text)
            self._watcher.note(text)


class OfTrial(progress.Watcher):
    """Adds the name of the trial to what its worker reports."""

    def __init__(self, watcher: progress.Watcher, name: str) -> None:
        self._watcher, self._name = watcher, name

    def begin(self, total: float, done: float) -> None:
        self._watcher.begin(total, done)

    def stage(self, title: str, steps: int, done: int, work: float) -> None:
        self._watcher.stage(f"{self._name}: {title}", steps, done, work)

    def step(self, done: int) -> None:
        self._watcher.step(done)

    def worked(self, work: float) -> None:
        self._watcher.worked(work)

    def spared(self, work: float) -> None:
        self._watcher.spared(work)

    def busy(self, title: str, done: int, of: int) -> None:
        self._watcher.busy(f"{self._name}: {title}", done, of)

    def note(self, text: str) -> None:
        if text.startswith(WORTH):
            self._watcher.note(text)


class TrialsAtOnce(progress.Watcher):
    """Reports trials that several workers train at once to a watcher as one whole."""

    def __init__(self, watcher: progress.Watcher, trials: int) -> None:
        self._watcher, self._trials = watcher, trials
        self._expected: float | None = None  # work of a trial, taken from the first that begins
        self._said: set[str] = set()

    def turn(self, worker: int) -> None:
        self._watcher.turn(worker)

    def begin(self, total: float, done: float) -> None:
        """Begin a trial. Until they begin, all others are assumed to take as much work as the first."""
        if self._expected is None:
            self._expected = total - done
            self._watcher.begin(self._trials * self._expected, 0.0)
        else:
            self._watcher.spared(self._expected - (total - done))

    def stage(self, title: str, steps: int, done: int, work: float) -> None:
        self._watcher.stage(title, steps, done, work)

    def step(self, done: int) -> None:
        self._watcher.step(done)

    def worked(self, work: float) -> None:
        self._watcher.worked(work)

    def spared(self, work: float) -> None:
        self._watcher.spared(work)

    def busy(self, title: str, done: int, of: int) -> None:
        self._watcher.busy(title, done, of)

    def note(self, text: str) -> None:
        """Pass on a note once, whichever trials report it."""
        if text not in self._said:
            self._said.add(text)
            self._watcher.note(text)
