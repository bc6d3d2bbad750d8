"""Process items in threads, a bounded number ahead of the consumer, so that memory does not grow with their number."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

AHEAD = 64
"""Number of items that are processed ahead of the consumer."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def results(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield the result of ``work`` for each item, in order."""
    with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:  # decoders release the GIL
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
