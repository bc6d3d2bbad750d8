"""Messages between the main process of a run and its workers."""

from abc import ABC, abstractmethod
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from dmt.runs.progress import Watcher
from dmt.runs.stopping import Stop


@dataclass(frozen=True)
class Here:
    """The context in which a worker carries out its orders.

    Attributes:
        number: number of the worker; one that replaces a lost worker gets its number.
        watcher: passes progress on to the main process.
        stop: whether and why to stop; checked after every step.
        kept: what orders keep for later orders, such as data.
        until_end: context managers that are closed when the worker ends.
    """

    number: int
    watcher: Watcher
    stop: Stop
    kept: dict[str, Any] = field(default_factory=dict)
    until_end: ExitStack = field(default_factory=ExitStack)


class Order(ABC):
    """A task for one worker. It can be pickled, and carried out again if a worker was lost."""

    @property
    @abstractmethod
    def title(self) -> str:
        """A title to show, unique within a run."""

    @abstractmethod
    def carry_out(self, here: Here) -> Any:
        """Carry out the order; the result is sent back to the main process."""


@dataclass(frozen=True)
class Ready:
    """The worker waits for its first order. ``environment`` holds versions and hardware, as recorded in runs."""

    environment: dict[str, Any]


@dataclass(frozen=True)
class Said:
    """A call for the watcher: the name of a method, and its arguments."""

    what: str
    words: tuple[Any, ...]


@dataclass(frozen=True)
class Done:
    """The order was carried out."""

    result: Any


@dataclass(frozen=True)
class Halted:
    """The worker stopped at a checkpoint; ``reason`` is a `Stop.reason`."""

    reason: int


@dataclass(frozen=True)
class Failed:
    """The order failed with an error."""

    error: Exception


@dataclass(frozen=True)
class Lost:
    """The worker is gone."""


Message = Ready | Said | Done | Halted | Failed | Lost
