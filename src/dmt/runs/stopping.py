"""Stopping cleanly: a budget that ran out, Ctrl-C, SIGTERM and SIGHUP all end a run at a checkpoint."""

import math
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from dmt.errors import ConfigError, DmtError

HANGUP = (signal.SIGHUP,) if hasattr(signal, "SIGHUP") else ()
"""A terminal was closed."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, *HANGUP)
"""Those that ask to stop: Ctrl-C, the system, and a terminal that was closed."""


class Stopped(DmtError):
    """The run ended before its last step, on purpose. Nothing is lost; the same command resumes."""

    def __init__(self, reason: str, code: int) -> None:
        super().__init__(f"stopped by {reason} at a checkpoint; repeat the command to resume")
        self.code = code


class Stop:
    """Why to stop, once there is a reason."""

    def __init__(self, budget: float | None = None) -> None:
        self._deadline = None if budget is None else time.monotonic() + budget
        self._signal: int | None = None

    def __call__(self) -> bool:
        return self._signal is not None or (self._deadline is not None and time.monotonic() >= self._deadline)

    @property
    def reason(self) -> int:
        """0 for none, 1 for the budget, 1 + its number for a signal: so that processes can agree on the largest."""
        return 1 + self._signal if self._signal is not None else int(self())

    def adopt(self, reason: int) -> bool:
        """Stop for the `reason` of another process, if that is one. Returns whether it is."""
        if reason == 1:
            self._deadline = -math.inf
        if reason > 1:
            self._signal = reason - 1
        return reason > 0

    @property
    def left(self) -> float:
        """Seconds of the budget; infinite without one."""
        return math.inf if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    @property
    def asked(self) -> bool:
        """Whether somebody wants it to stop, not only the budget."""
        return self._signal is not None

    def error(self) -> Stopped:
        """What to raise: the exit code is 128 + signal, or 3 when the budget ran out."""
        if self._signal is not None:
            return Stopped(signal.Signals(self._signal).name, 128 + self._signal)
        return Stopped("the budget", 3)

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Within, the first Ctrl-C, SIGTERM or SIGHUP asks for a clean stop; a second one acts as usual.

        Under nohup, SIGHUP is ignored and stays so.
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
    """``90``, ``90s``, ``9m``, ``1h30m`` to seconds."""
    match = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?", text.strip())
    if not match or not any(match.groups()):
        raise ConfigError(f"a budget looks like 90s, 9m or 1h30m, not '{text}'")
    hours, minutes, rest = (float(each or 0) for each in match.groups())
    total = 3600 * hours + 60 * minutes + rest
    if total <= 0:
        raise ConfigError(f"a budget must be longer than '{text}'")
    return total
