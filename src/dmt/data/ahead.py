"""Work on items in threads, a little before its results are asked for: memory does not grow with their number."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

AHEAD = 64
"""Items that are worked on before their turn."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def results(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Of each item, in order."""
    with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:  # decoders let go of the interpreter
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
