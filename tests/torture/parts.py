"""What all parts of the torture share: cases by name, each repeatable from the seed alone."""

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


class Failure(Exception):
    """Something that must not happen."""


@dataclass(frozen=True)
class Place:
    """Where a case works.

    Attributes:
        base: what the part prepared, shared by its cases.
        room: an empty folder of its own.
        rng: drawn from the seed, the part and the name of the case.
    """

    base: Path
    room: Path
    rng: random.Random


@dataclass(frozen=True)
class Outcome:
    """How a case ended well.

    Attributes:
        kind: it is counted under this.
        count: of what was done to files or processes.
        figures: what was measured.
    """

    kind: str
    count: int = 1
    figures: Mapping[str, float] = field(default_factory=dict)


class Part(ABC):
    """One kind of torture.

    Attributes:
        name: for ``--only``.
        about: what is done and how it is judged, a sentence or two for the record.
        seconds: of one case, roughly, for the first ETA.
    """

    name: str
    about: str
    seconds: float = 1.0

    def prepare(self, base: Path) -> None:  # noqa: B027  not every part needs anything
        """Make what the cases share, in a process of its own."""

    @abstractmethod
    def cases(self, scale: float) -> Sequence[str]:
        """Names; ``scale`` is 1 for all of them, and less for fewer."""

    @abstractmethod
    def run(self, case: str, at: Place) -> Outcome:
        """One case.

        Raises:
            Failure: something went wrong that must not.
            AssertionError: likewise, of the command.
        """


def some(count: int, scale: float) -> int:
    """So many of them, but at least one."""
    return max(1, round(count * scale))
