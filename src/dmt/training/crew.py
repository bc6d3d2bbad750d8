"""Threads that read ahead and write behind."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

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

    def ahead(self, task: Callable[[int], Result], positions: Iterable[int]) -> Iterator[Result]:
        """The results in order, computed a little before they are asked for."""
        waiting: deque[Future[Result]] = deque()
        for position in positions:
            waiting.append(self._threads.submit(task, position))
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
