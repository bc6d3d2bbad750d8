"""What the process that runs a run and its workers say to each other."""

from abc import ABC, abstractmethod
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from dmt.runs.progress import Watcher
from dmt.runs.stopping import Stop


@dataclass(frozen=True)
class Here:
    """A worker as its orders find it.

    Attributes:
        number: which of the workers it is; one that takes the place of a lost one has its number.
        watcher: tells the process that runs the run.
        stop: why to stop; asked after every step.
        kept: what orders leave for those that come after them, such as data that were read.
        until_end: what is to be closed when the worker ends.
    """

    number: int
    watcher: Watcher
    stop: Stop
    kept: dict[str, Any] = field(default_factory=dict)
    until_end: ExitStack = field(default_factory=ExitStack)


class Order(ABC):
    """Something to be done by one worker. It can be pickled, and carried out again where a worker was lost."""

    @property
    @abstractmethod
    def title(self) -> str:
        """For people; no two of a run are alike."""

    @abstractmethod
    def carry_out(self, here: Here) -> Any:
        """Do it; what is returned goes back."""


@dataclass(frozen=True)
class Ready:
    """A worker waits for its first order. ``environment``: versions and hardware, as a run records them."""

    environment: dict[str, Any]


@dataclass(frozen=True)
class Said:
    """To the watcher: the name of a method, and what it is called with."""

    what: str
    words: tuple[Any, ...]


@dataclass(frozen=True)
class Done:
    """The order is carried out."""

    result: Any


@dataclass(frozen=True)
class Halted:
    """The worker stopped at a checkpoint, for a reason as `Stop.reason` tells it."""

    reason: int


@dataclass(frozen=True)
class Failed:
    """The order cannot be carried out."""

    error: Exception


@dataclass(frozen=True)
class Lost:
    """The worker is gone."""


Message = Ready | Said | Done | Halted | Failed | Lost
