"""Clean stopping: an exhausted budget, Ctrl-C, SIGTERM and SIGHUP all end a run at a checkpoint."""

import math
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from types import FrameType

from dmt.errors import ConfigError, DmtError

HANGUP = (signal.SIGHUP,) if hasattr(signal, "SIGHUP") else ()
"""The signal that a closed terminal sends, where the system has it."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, *HANGUP)
"""Signals that ask to stop: from Ctrl-C, the system, or a closed terminal."""


class Stopped(DmtError):
    """The run was stopped before its last step. Nothing is lost; the same command resumes it."""

    def __init__(self, reason: str, code: int) -> None:
        super().__init__(f"stopped by {reason} at a checkpoint; repeat the command to resume")
        self.code = code


class Stop:
    """Request to stop, by a budget or a signal; call it to see whether to stop now.

    Args:
        budget: seconds from now until the run stops; None for no limit.
    """

    def __init__(self, budget: float | None = None) -> None:
        number = isinstance(budget, Real) and not isinstance(budget, bool)
        if budget is not None and not (number and budget >= 0):
            raise ConfigError(f"budget must be a number of seconds, such as 600, not {budget!r}")
        self._deadline: float | None = None if budget is None else time.monotonic() + budget
        self._signal: int | None = None

    def __call__(self) -> bool:
        return self._signal is not None or (self._deadline is not None and time.monotonic() >= self._deadline)

    @property
    def reason(self) -> int:
        """Reason as a number: 0 for none, 1 for the budget, 1 + n for signal n. Processes agree on the largest."""
        return 1 + self._signal if self._signal is not None else int(self())

    def adopt(self, reason: int) -> bool:
        """Take over the `reason` of another process; return whether it is one to stop."""
        if reason == 1:
            self._deadline = -math.inf
        if reason > 1:
            self._signal = reason - 1
        return reason > 0

    @property
    def left(self) -> float:
        """Seconds that are left of the budget; infinite without one."""
        return math.inf if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    @property
    def asked(self) -> bool:
        """Whether a signal asked to stop, and not only the budget."""
        return self._signal is not None

    def error(self) -> Stopped:
        """Return the exception to raise; its exit code is 128 + signal, or 3 if the budget ran out."""
        if self._signal is not None:
            name = signal.Signals(self._signal).name
            return Stopped(f"Ctrl-C ({name})" if self._signal == signal.SIGINT else name, 128 + self._signal)
        return Stopped("the budget", 3)

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Context in which the first Ctrl-C, SIGTERM or SIGHUP asks for a clean stop; a second one acts as usual.

        Under nohup, SIGHUP is ignored and stays ignored.
        """
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread may handle signals
            return
        numbers = [number for number in SIGNALS if number not in HANGUP or signal.getsignal(number) != signal.SIG_IGN]
        before = {number: signal.getsignal(number) for number in numbers}

        def ask(number: int, frame: FrameType | None) -> None:
            self._signal = number
            signal.signal(number, before[signal.Signals(number)])

        for number in before:
            signal.signal(number, ask)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def seconds(text: str) -> float:
    """Parse a budget such as ``90``, ``90s``, ``9m`` or ``1h30m`` to seconds."""
    number = r"(\d+(?:\.\d+)?)"
    bare = re.fullmatch(number, text.strip())  # only alone: 1h30 would be ambiguous
    match = bare or re.fullmatch(rf"(?:(\d+)h)?(?:(\d+)m)?(?:{number}s)?", text.strip())
    if not match or not any(match.groups()):
        raise ConfigError(f"a budget looks like 90s, 9m or 1h30m, not '{text}'")
    hours, minutes, rest = (0.0, 0.0, float(bare[0])) if bare else (float(each or 0) for each in match.groups())
    total = 3600 * hours + 60 * minutes + rest
    if total <= 0:
        raise ConfigError(f"a budget must be longer than '{text}'")
    return total
