"""Workers as seen by the main process of a run, on any machine."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from queue import SimpleQueue

from dmt.workers.messages import Message, Order


class Worker(ABC):
    """Handle of a worker. Its messages are put into an inbox, with `Lost` as the last one when it is gone."""

    def __init__(self, number: int) -> None:
        self.number = number

    @abstractmethod
    def hand(self, order: Order) -> None:
        """Send an order to the worker, which carries out one at a time."""

    @abstractmethod
    def stop(self, reason: int) -> None:
        """Ask the worker to stop at a checkpoint; ``reason`` is a `Stop.reason`."""

    @abstractmethod
    def end(self) -> None:
        """End the worker, which has no order, since there are no more."""

    @abstractmethod
    def kill(self) -> None:
        """Kill the worker at once."""


Inbox = SimpleQueue[tuple[Worker, Message]]
"""Messages of all workers in the order of arrival."""

Start = Callable[[int, Inbox], Worker]
"""A function that starts the worker of a number."""
