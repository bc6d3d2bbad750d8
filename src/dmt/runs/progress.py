"""What a person sees while a run trains: bars on a terminal, lines in a log, or nothing.

A terminal that was closed and a log on a full disk cost what they would show, not the run.
"""

import contextlib
import sys
import time
from abc import ABC, abstractmethod
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class Watcher(ABC):
    """Hears of a run. Work is counted in training passes over images, so that the ETA is right across stages.

    Labeling counts too; scoring is short and does not.
    """

    def __enter__(self) -> "Watcher":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:  # noqa: B027  most watchers hold nothing
        """Free what the watcher holds."""

    @abstractmethod
    def begin(self, total: float, done: float) -> None:
        """A run begins, with so much work in all, of which some was done before."""

    def turn(self, worker: int) -> None:  # noqa: B027  not every watcher tells them apart
        """Of several workers, this one speaks next. Its stage may be announced again, from the step it is at."""

    @abstractmethod
    def stage(self, title: str, steps: int, done: int, work: float) -> None:
        """A stage begins, or resumes from step ``done``; each step is so much work."""

    @abstractmethod
    def step(self, done: int) -> None:
        """So many steps of the current stage are done."""

    def worked(self, work: float) -> None:  # noqa: B027  not every watcher counts
        """So much work was done other than by steps."""

    def spared(self, work: float) -> None:  # noqa: B027  not every watcher counts
        """So much work of the total will not be done: it is not needed any more."""

    def busy(self, title: str, done: int, of: int) -> None:  # noqa: B027  not every watcher cares
        """Something other than steps takes a while: so much of it is done."""

    def reading(self, done: int, of: int) -> None:
        """So many files are read."""
        self.busy("reading images", done, of)

    @abstractmethod
    def note(self, text: str) -> None:
        """Something worth a line."""


class Silent(Watcher):
    """Says nothing."""

    def begin(self, total: float, done: float) -> None:
        pass

    def stage(self, title: str, steps: int, done: int, work: float) -> None:
        pass

    def step(self, done: int) -> None:
        pass

    def note(self, text: str) -> None:
        pass


class Bars(Watcher):
    """Bars with ETA on a terminal: the whole run, and the stage that is trained, or one for each worker."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("ETA"),
            TimeRemainingColumn(compact=True),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            speed_estimate_period=60,
        )
        # not shown before it moves: until then what prepares the run says how far it is
        self._whole = self._bars.add_task("whole run", total=None, visible=False)
        self._part = self._bars.add_task("reading", total=None)
        self._parts = {0: self._part}
        self._steps_done, self._work = 0, 0.0
        self._bars.start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._bars.stop()

    def begin(self, total: float, done: float) -> None:
        self._bars.reset(self._whole, total=total)
        self._bars.update(self._whole, completed=done)

    def turn(self, worker: int) -> None:
        if worker not in self._parts:
            self._parts[worker] = self._bars.add_task("", total=None)
        self._part = self._parts[worker]

    def stage(self, title: str, steps: int, done: int, work: float) -> None:
        bar = self._bars.tasks[self._part]
        if (bar.description, bar.total) != (title, steps):  # else it is announced again
            self._bars.reset(self._part, total=steps, completed=done, description=title)
        self._bars.update(self._whole, visible=True)
        self._steps_done, self._work = done, work

    def step(self, done: int) -> None:
        self._bars.advance(self._whole, (done - self._steps_done) * self._work)
        self._bars.update(self._part, completed=done)
        self._steps_done = done

    def worked(self, work: float) -> None:
        self._bars.update(self._whole, advance=work, visible=True)

    def spared(self, work: float) -> None:
        self._bars.update(self._whole, total=(self._bars.tasks[self._whole].total or 0.0) - work)

    def busy(self, title: str, done: int, of: int) -> None:
        if self._bars.tasks[self._part].description != title:
            self._bars.reset(self._part, total=of, description=title)
        self._bars.update(self._part, completed=done, total=of)

    def note(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._console.print(text, markup=False, emoji=False, highlight=False, overflow="ignore", crop=False)


class Lines(Watcher):
    """A line every few seconds, for logs and pipes."""

    def __init__(self, stream: TextIO, every: float = 10.0) -> None:
        self._stream, self._every = stream, every
        self._total = self._done = self._fresh = 0.0
        self._warm, self._busy_first, self._busy_done = False, 0, 0
        self._title, self._steps, self._steps_done, self._work = "", 0, 0, 0.0
        self._began = self._said = self._began_busy = time.monotonic()

    def begin(self, total: float, done: float) -> None:
        self._total, self._done, self._fresh, self._warm = total, done, 0.0, False
        self._began = self._said = time.monotonic()

    def stage(self, title: str, steps: int, done: int, work: float) -> None:
        self._title, self._steps, self._steps_done, self._work = title, steps, done, work

    def step(self, done: int) -> None:
        first, self._warm = not self._warm and done == self._steps_done + 1, True
        self.worked((done - self._steps_done) * self._work)
        self._steps_done = done
        now = time.monotonic()
        if now - self._said >= self._every:
            left = (self._total - self._done) * (now - self._began) / max(self._fresh, 1e-9)
            said = f"{self._title}: step {done}/{self._steps}, whole run {self._done / self._total:.0%}"
            self.note(said if first else f"{said}, ETA {duration(left)}")
            self._said = now
        if first:  # it allocates and compiles, and says nothing of those to come
            self._began, self._fresh = now, 0.0

    def worked(self, work: float) -> None:
        self._done, self._fresh = self._done + work, self._fresh + work

    def spared(self, work: float) -> None:
        self._total -= work

    def busy(self, title: str, done: int, of: int) -> None:
        now = time.monotonic()
        if title != self._title or done < self._busy_done:  # something new, or the same once more
            self._title, self._began_busy, self._busy_first = title, now, done
        self._busy_done = done
        if now - self._said >= self._every:
            fresh = done - self._busy_first  # what was there before took no time now
            left = duration((of - done) * (now - self._began_busy) / fresh) if fresh else None
            self.note(f"{title}: {done:,} of {of:,}" + (f", ETA {left}" if left else ""))
            self._said = now

    def note(self, text: str) -> None:
        with contextlib.suppress(OSError):
            print(text, file=self._stream, flush=True)


def default() -> Watcher:
    """Bars on a terminal, lines elsewhere; both on standard error, so that results can be piped."""
    console = Console(stderr=True)
    return Bars(console) if console.is_terminal else Lines(sys.stderr)


def duration(seconds: float) -> str:
    """1:02:03, or 2:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
