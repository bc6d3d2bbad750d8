"""Work in a thread of its own, while the caller does something else."""

import threading
from collections.abc import Callable

Cancelable = Callable[[Callable[[], bool]], None]
"""Work that takes a function which says whether it was canceled, and is asked now and then."""


class BackgroundWork:
    """A thread that works until it is done or canceled."""

    def __init__(self, work: Cancelable) -> None:
        self._error: BaseException | None = None
        self._canceled = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(work,))
        self._thread.start()

    def _run(self, work: Cancelable) -> None:
        try:
            work(self._canceled.is_set)
        except BaseException as error:  # raised in the thread that waits
            self._error = error

    @property
    def busy(self) -> bool:
        return self._thread.is_alive()

    def wait(self) -> None:
        """Return when the work is done; what went wrong there is raised here, once."""
        try:
            self._thread.join()
        except BaseException:  # e.g. Ctrl-C: nobody waits for the thread any more
            self.cancel()
            raise
        error, self._error = self._error, None
        if error is not None:
            raise error

    def cancel(self) -> None:
        """Have it end soon, and return when it has; what went wrong does not matter any more."""
        self._canceled.set()
        self._thread.join()
        self._error = None
