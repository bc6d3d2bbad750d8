"""Cancelable work in a background thread."""

import threading
from collections.abc import Callable

Cancelable = Callable[[Callable[[], bool]], None]
"""Work that is passed a function which returns whether it was canceled, and calls that function now and then."""


class BackgroundWork:
    """A thread that runs until its work is done or canceled."""

    def __init__(self, work: Cancelable) -> None:
        self._error: BaseException | None = None
        self._canceled = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(work,))
        self._thread.start()

    def _run(self, work: Cancelable) -> None:
        try:
            work(self._canceled.is_set)
        except BaseException as error:  # re-raised by `wait`, in the waiting thread
            self._error = error

    @property
    def busy(self) -> bool:
        return self._thread.is_alive()

    def wait(self) -> None:
        """Wait until the work is done, and re-raise its exception, if any, once."""
        try:
            self._thread.join()
        except BaseException:  # e.g. Ctrl-C: the caller no longer waits for the thread
            self.cancel()
            raise
        error, self._error = self._error, None
        if error is not None:
            raise error

    def cancel(self) -> None:
        """Ask the work to stop, wait until the thread has ended, and discard its exception, if any."""
        self._canceled.set()
        self._thread.join()
        self._error = None
