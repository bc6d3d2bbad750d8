"""Progress of a run: bars on a terminal, lines in a log, or nothing.

If the terminal is closed or the log's disk is full, messages are lost, but the run continues.
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
    """Receiver of a run's progress.

    Work is counted in training passes over images, so that the ETA is right across stages. Labeling counts, too;
    scoring takes little time and does not.
    """

    def __enter__(self) -> "Watcher":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:  # noqa: B027  most watchers hold nothing
        """Release resources of the watcher."""

    @abstractmethod
    def begin(self, total: float, done: float) -> None:
        """A run begins, with ``total`` work, of which ``done`` was done before."""

    def turn(self, worker: int) -> None:  # noqa: B027  not every watcher tells them apart
        """The following calls are from this worker. Its stage may be announced again, from the step it has reached."""

    @abstractmethod
    def stage(self, title: str, steps: int, done: int, work: float) -> None:
        """A stage begins, or resumes from step ``done``; each step is ``work``."""

    @abstractmethod
    def step(self, done: int) -> None:
        """``done`` steps of the current stage are done."""

    def worked(self, work: float) -> None:  # noqa: B027  not every watcher counts
        """Some work was done other than by steps; negative if work has to be done again."""

    def spared(self, work: float) -> None:  # noqa: B027  not every watcher counts
        """Some work of the total is no longer needed and will not be done."""

    def busy(self, title: str, done: int, of: int) -> None:  # noqa: B027  not every watcher cares
        """Something other than training takes a while, and ``done`` of its parts are done."""

    def reading(self, done: int, of: int) -> None:
        """``done`` files have been read."""
        self.busy("reading images", done, of)

    @abstractmethod
    def note(self, text: str) -> None:
        """A message of one line for the user."""


class Silent(Watcher):
    """A watcher that shows nothing."""

    def begin(self, total: float, done: float) -> None:
        pass

    def stage(self, title: str, steps: int, done: int, work: float) -> None:
        pass

    def step(self, done: int) -> None:
        pass

    def note(self, text: str) -> None:
        pass


class _Bars(Progress):
    """Bars that a closed terminal does not stop: adding or resetting one draws it at once, in the run's own thread."""

    def refresh(self) -> None:
        with contextlib.suppress(OSError):
            super().refresh()


class Bars(Watcher):
    """Progress bars with ETA on a terminal: one for the whole run, and one for the current stage of each worker."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = _Bars(
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
        # hidden until training begins; until then, the other bar shows the progress of preparations
        self._whole = self._bars.add_task("whole run", total=None, visible=False)
        self._part = self._bars.add_task("reading", total=None)
        self._parts = {0: self._part}
        self._steps_done, self._work = 0, 0.0
        with contextlib.suppress(OSError):
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
        if (bar.description, bar.total) != (title, steps):  # otherwise the same stage is announced again
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
    """A line of text every few seconds, for logs and pipes."""

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
            # rounding per class may keep more labels than planned, so that the last stage takes more steps
            share = min(1.0, self._done / max(self._total, 1e-9))
            left = max(0.0, self._total - self._done) * (now - self._began) / max(self._fresh, 1e-9)
            said = f"{self._title}: step {done}/{self._steps}, whole run {share:.0%}"
            self.note(said if first else f"{said}, ETA {duration(left)}")
            self._said = now
        if first:  # it allocates memory and compiles, so its time does not predict that of the others
            self._began, self._fresh = now, 0.0

    def worked(self, work: float) -> None:
        self._done, self._fresh = self._done + work, self._fresh + work

    def spared(self, work: float) -> None:
        self._total -= work

    def busy(self, title: str, done: int, of: int) -> None:
        now = time.monotonic()
        if title != self._title or done < self._busy_done:  # something new, or the same a second time
            self._title, self._began_busy, self._busy_first = title, now, done
        self._busy_done = done
        if now - self._said >= self._every:
            fresh = done - self._busy_first  # parts that were done before this began took no time
            left = duration((of - done) * (now - self._began_busy) / fresh) if fresh else None
            self.note(f"{title}: {done:,} of {of:,}" + (f", ETA {left}" if left else ""))
            self._said = now

    def note(self, text: str) -> None:
        with contextlib.suppress(OSError):
            print(text, file=self._stream, flush=True)


def default() -> Watcher:
    """Return bars on a terminal, lines elsewhere; both on standard error, so that results can be piped."""
    console = Console(stderr=True)
    return Bars(console) if console.is_terminal else Lines(sys.stderr)


def duration(seconds: float) -> str:
    """Format seconds as 1:02:03, or 2:03 below an hour."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
