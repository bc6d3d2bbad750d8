"""Work that goes on beside the caller's own."""

import threading
from collections.abc import Callable


class Behind:
    """A thread that works until it is done or given up.

    Args:
        work: takes a function that says whether to give up.
    """

    def __init__(self, work: Callable[[Callable[[], bool]], None]) -> None:
        self._error: BaseException | None = None
        self._given_up = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(work,))
        self._thread.start()

    def _run(self, work: Callable[[Callable[[], bool]], None]) -> None:
        try:
            work(self._given_up.is_set)
        except BaseException as error:  # raised where somebody waits
            self._error = error

    @property
    def busy(self) -> bool:
        return self._thread.is_alive()

    def wait(self) -> None:
        """Return when the work is done; what went wrong there is raised here, once."""
        try:
            self._thread.join()
        except BaseException:  # somebody is in a hurry
            self.give_up()
            raise
        error, self._error = self._error, None
        if error is not None:
            raise error

    def give_up(self) -> None:
        """Have it end soon, and return when it has; what went wrong does not matter any more."""
        self._given_up.set()
        self._thread.join()
        self._error = None
