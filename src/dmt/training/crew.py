"""Threads that read ahead and write behind."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")


class Crew:
    """Threads with bounded queues: whoever brings work faster than it is done has to wait. First errors surface."""

    def __init__(self) -> None:
        workers = min(8, os.cpu_count() or 1)  # compressors let go of the interpreter
        self._room = 2 * workers
        self._threads = ThreadPoolExecutor(workers)
        self._running: deque[Future[None]] = deque()

    def submit(self, task: Callable[[], None]) -> None:
        self._running.append(self._threads.submit(task))
        while len(self._running) > self._room:
            self._running.popleft().result()

    def ahead(self, task: Callable[[Part], Result], parts: Iterable[Part]) -> Iterator[Result]:
        """The results in order, computed a little before they are asked for."""
        waiting: deque[Future[Result]] = deque()
        for part in parts:
            waiting.append(self._threads.submit(task, part))
            if len(waiting) > self._room:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def drain(self) -> None:
        while self._running:
            self._running.popleft().result()

    def close(self) -> None:
        self.drain()
        self._threads.shutdown()


class Behind:
    """Work that goes on beside the caller's own until `wait` is called, which raises what went wrong there."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(work,))
        self._thread.start()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._error = error

    def wait(self) -> None:
        """Return when it is done; what went wrong is raised once."""
        self._thread.join()
        error, self._error = self._error, None
        if error is not None:
            raise error
