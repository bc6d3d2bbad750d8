"""Memory of a process, from ``/proc``; Linux only."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

MB = 1.024e-3
"""MB of 1,000,000 bytes per kB of ``/proc``, which is 1,024 bytes."""


def status(process: int) -> Iterator[tuple[str, float]]:
    """Yield (name, MB) of the memory sizes in a process's status; nothing if the process has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:  # the process has just ended
        return
    for line in lines:
        key, _, value = line.partition(":")
        if value.endswith("kB"):
            yield key, float(value.split()[0]) * MB


class Watched:
    """Context manager that samples the memory of this process.

    Attributes:
        anonymous: highest RssAnon in MB: memory that the system cannot reclaim, without pages of files.
    """

    def __init__(self, every: float = 0.02) -> None:
        self.anonymous = 0.0
        self._every, self._over = every, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._over.wait(self._every):
            self.anonymous = max(self.anonymous, dict(status(os.getpid())).get("RssAnon", 0.0))

    def __enter__(self) -> "Watched":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
