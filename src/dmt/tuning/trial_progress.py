"""What a person sees while trials train: one ETA over all of them, and no test score."""

from dmt.runs import progress

WORTH = ("note:", "skipped")
"""How the notes of a run begin that a tuning passes on. All others are known, or tell test scores."""


class Trials(progress.Watcher):
    """Stands between a watcher and the runs of the trials, which come one after the other."""

    def __init__(self, watcher: progress.Watcher, trials: int) -> None:
        self._watcher, self._trials = watcher, trials
        self._number, self._name, self._past = 0, "", 0.0
        self._total = 0.0  # work of the present trial
        self._said: set[str] = set()

    def trial(self, name: str) -> None:
        """The next trial begins."""
        self._past, self._total = self._past + self._total, 0.0
        self._number, self._name = self._number + 1, name

    def begin(self, total: float, done: float) -> None:
        """A trial's run begins. Those to come will be about as much work as is left of this one."""
        self._total = total
        coming = max(0, self._trials - self._number) * (total - done)
        self._watcher.begin(self._past + total + coming, self._past + done)

    def stage(self, title: str, steps: int, done: int, work: float) -> None:
        """A stage begins."""
        self._watcher.stage(f"{self._number} of {self._trials} ({self._name}): {title}", steps, done, work)

    def turn(self, worker: int) -> None:
        """One of several workers speaks."""
        self._watcher.turn(worker)

    def step(self, done: int) -> None:
        """So many steps of the current stage are done."""
        self._watcher.step(done)

    def worked(self, work: float) -> None:
        """Work was done other than by steps."""
        self._watcher.worked(work)

    def spared(self, work: float) -> None:
        """Work of the trial will not be done."""
        self._total -= work
        self._watcher.spared(work)

    def busy(self, title: str, done: int, of: int) -> None:
        """Something other than steps takes a while."""
        self._watcher.busy(title, done, of)

    def note(self, text: str) -> None:
        """A note of a run: passed on once, if it concerns a tuning."""
        if text.startswith(WORTH) and text not in self._said:
            self._said.add(text)
            self._watcher.note(text)


class OfTrial(progress.Watcher):
    """Names the trial that a worker speaks of."""

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
    """Stands between a watcher and trials that several workers train: their work is one whole."""

    def __init__(self, watcher: progress.Watcher, trials: int) -> None:
        self._watcher, self._trials = watcher, trials
        self._expected: float | None = None  # work of a trial, as of the first
        self._said: set[str] = set()

    def turn(self, worker: int) -> None:
        self._watcher.turn(worker)

    def begin(self, total: float, done: float) -> None:
        """A trial begins. Those to come are taken to be as much work as the first was."""
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
        """Once, whichever trials say it."""
        if text not in self._said:
            self._said.add(text)
            self._watcher.note(text)
