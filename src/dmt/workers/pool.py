"""Workers as the process that runs a run knows them, whatever machine they are on."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from queue import SimpleQueue

from dmt.workers.messages import Message, Order


class Worker(ABC):
    """One of them. What it says comes to an inbox, `Lost` at its end."""

    def __init__(self, number: int) -> None:
        self.number = number

    @abstractmethod
    def hand(self, order: Order) -> None:
        """Have it carry out an order; one at a time."""

    @abstractmethod
    def stop(self, reason: int) -> None:
        """Have it stop at a checkpoint."""

    @abstractmethod
    def end(self) -> None:
        """Let it end: there are no more orders."""

    @abstractmethod
    def kill(self) -> None:
        """End it at once."""


Inbox = SimpleQueue[tuple[Worker, Message]]
"""What all workers say, in order."""

Start = Callable[[int, Inbox], Worker]
"""Starts a worker of a number."""
