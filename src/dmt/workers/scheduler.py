"""Scheduler: gives orders to workers as they become idle, until all are done or there is a reason to stop."""

import queue
import signal
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from dmt.errors import RunError
from dmt.runs.progress import Watcher
from dmt.runs.stopping import Stop
from dmt.workers.messages import Done, Failed, Halted, Lost, Message, Order, Ready, Said
from dmt.workers.pool import Inbox, Start, Worker
from dmt.workers.several import SeveralAtOnce

ATTEMPTS = 3
"""Number of workers lost while working on one order, or before their first order, after which the run fails."""

TICK = 0.2
"""Seconds between two checks of whether to stop."""


class Agenda(ABC):
    """The orders to carry out."""

    @abstractmethod
    def ready(self) -> Sequence[Order]:
        """Return the orders that can begin now and have not yet, in the order in which one process would do them."""

    @abstractmethod
    def begin(self, order: Order) -> None:
        """Record that an order was given to a worker."""

    @abstractmethod
    def done(self, order: Order, result: Any) -> None:
        """Record that an order was carried out."""

    @abstractmethod
    def put_back(self, order: Order) -> None:
        """Record that an order was interrupted and has to be given out again."""

    def failed(self, order: Order, error: Exception) -> None:
        """Handle an error in an order; raising ends the run, returning continues with the other orders."""
        raise error


class Scheduler:
    """Gives orders to at most ``count`` workers at once."""

    def __init__(
        self, start: Start, count: int, watcher: Watcher, stop: Stop, log: Callable[[int, dict[str, Any]], None]
    ) -> None:
        """``log`` is called with a worker's number and environment once it is ready."""
        self._start, self._count, self._stop, self._log = start, count, stop, log
        self._watcher = SeveralAtOnce(watcher)
        self._inbox: Inbox = queue.SimpleQueue()
        self._idle: list[Worker] = []
        self._starting: set[Worker] = set()
        self._busy: dict[Worker, Order] = {}
        self._lost: Counter[str] = Counter()
        self._handed = self._stopping = False

    def run(self, agenda: Agenda) -> None:
        """Carry out all orders on the agenda.

        Raises:
            Stopped: if there was a reason to stop; all workers have then stopped at a checkpoint.
        """
        try:
            while self._hand_out(agenda) or self._busy:
                self._hear(agenda)
            for worker in self._idle:
                worker.end()
            self._idle.clear()
        finally:  # workers that are left are no longer needed
            for worker in self._workers:
                worker.kill()
        if agenda.ready():
            raise self._stop.error()

    @property
    def _workers(self) -> list[Worker]:
        return [*self._idle, *self._starting, *self._busy]

    def _hand_out(self, agenda: Agenda) -> bool:
        """Give orders to idle workers, and start more workers if there are orders for them.

        Returns:
            Whether there are orders left to give out, and no reason to stop.
        """
        # every session carries out something, however small its budget, so that repeated sessions finish
        if not self._stopping and self._stop() and (self._handed or self._stop.asked):
            self._halt(self._stop.reason)
        if self._stopping:
            return False
        ready = list(agenda.ready())
        while self._idle and ready:
            order = ready.pop(0)
            worker = self._idle.pop()
            agenda.begin(order)
            self._busy[worker] = order
            self._handed = True
            worker.hand(order)
        free = set(range(self._count)) - {worker.number for worker in self._workers}
        for number in sorted(free)[: max(0, len(ready) - len(self._starting))]:
            self._starting.add(self._start(number, self._inbox))
        return bool(ready)

    def _halt(self, reason: int) -> None:
        """Ask all busy workers to stop at a checkpoint."""
        self._stopping = True
        for worker in self._busy:
            worker.stop(reason)

    def _hear(self, agenda: Agenda) -> None:
        """Handle one message, if one arrives within `TICK` seconds."""
        try:
            worker, message = self._inbox.get(timeout=TICK)
        except queue.Empty:
            return
        if isinstance(message, Said):
            self._watcher.hear(worker.number, message)
        elif worker in self._workers:  # ignore workers that ended already
            self._take(worker, message, agenda)

    def _take(self, worker: Worker, message: Message, agenda: Agenda) -> None:
        order = self._busy.pop(worker, None)
        self._starting.discard(worker)
        self._idle = [each for each in self._idle if each is not worker]
        if isinstance(message, Lost):
            self._replace(worker, order, agenda)
            return
        self._idle.append(worker)
        if isinstance(message, Ready):
            self._log(worker.number, message.environment)
        elif isinstance(message, Done):
            assert order is not None
            agenda.done(order, message.result)
        elif isinstance(message, Halted):
            assert order is not None
            agenda.put_back(order)
            self._stop.adopt(message.reason)
            if not self._stopping:  # a worker was asked to stop from outside, which stops all
                self._halt(message.reason)
        elif isinstance(message, Failed):
            assert order is not None
            self._give_up(order, message.error, agenda)

    def _replace(self, worker: Worker, order: Order | None, agenda: Agenda) -> None:
        """Handle the loss of a worker; another one resumes its order from the last checkpoint."""
        worker.kill()  # clean up what is left of it
        title = "" if order is None else order.title
        self._lost[title] += 1
        self._watcher.lost(worker.number)
        if self._lost[title] >= ATTEMPTS:
            self._fail(
                RunError(
                    f"{title or 'a worker'} ended its process {ATTEMPTS} times without an error message, perhaps for "
                    f"lack of memory; check the system's log, or use fewer jobs"
                )
            )
        if order is not None:
            agenda.put_back(order)
            if not self._stopping:
                self._watcher.note(f"note: the process that worked on {title} is gone; another one takes over")

    def _give_up(self, order: Order, error: Exception, agenda: Agenda) -> None:
        try:
            agenda.failed(order, error)
        except Exception as reason:
            self._fail(reason)

    def _fail(self, error: Exception) -> NoReturn:
        """Raise an error, once all other workers have stopped at a checkpoint."""
        self._halt(1 + signal.SIGTERM)
        while self._busy:
            worker, message = self._inbox.get()
            if not isinstance(message, Said | Ready) and worker in self._busy:
                del self._busy[worker]
                self._idle += [] if isinstance(message, Lost) else [worker]
        raise error
