"""What was asked of a run, and what it comes to once the data are known."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any

from dmt.config import Config
from dmt.errors import ConfigError
from dmt.methods import catalogue
from dmt.presets import Preset
from dmt.runs import starting


@dataclass(frozen=True)
class Request:
    """What was asked for. All of it may decide what is trained; how and where is in `Conditions`.

    Attributes:
        data: a folder of images, or the name of a preset.
        out: the run's folder.
        methods: names; None for what is usual with the data.
        seeds: each decides a split and every random number.
        settings: option -> value; ``group.option`` for those of one method.
        starts: line -> what its fresh nets start from.
        baseline: whether a Baseline is trained beside methods whose gain is asked for.
        keep: which round's nets are used, the "best" or the "last"; None for as it was.
        budget: seconds that the schedule of a new run on a user's folder has to fit.
        anyway: whether a user's folder is trained on although there are errors in it.
        folds: whether folds of a user's labels may choose rates, lengths, γ and the method of a new run.
    """

    data: str | Path
    out: Path
    methods: tuple[str, ...] | None
    seeds: tuple[int, ...]
    settings: Mapping[str, Any]
    starts: Mapping[str, str]
    baseline: bool = True
    keep: str | None = None
    budget: float | None = None
    anyway: bool = False
    folds: bool = True

    def methods_or(self, *usual: str) -> tuple[str, ...]:
        """What to train: the methods asked for or else the usual, and a Baseline that they are compared with."""
        wanted = usual if self.methods is None else self.methods
        return tuple(catalogue.with_baseline(wanted)) if self.baseline else wanted


@dataclass(frozen=True)
class Prepared:
    """What a request comes to.

    Attributes:
        preset: what the data are known as, and what nets start from if nobody says.
        config: every option, with what was asked for.
        methods: names of all that is trained.
        images: a user's folder; None for a data set.
        notes: lines about what was chosen.
        warnings: errors in a user's folder.
        search: what folds of a user's labels chose, and how.
        pool: how far the unlabeled photos of a user are like the labeled ones.
        shortened: how much shorter first nets are trained than they should be, to fit a budget; empty if they are not.
    """

    preset: Preset
    config: Config
    methods: tuple[str, ...]
    images: Path | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    search: Mapping[str, Any] = field(default_factory=dict)
    pool: Mapping[str, Any] = field(default_factory=dict)
    shortened: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """All that a user should read before it begins."""
        return (*self.notes, *(f"warning: {each}" for each in self.warnings))


def several(seed: int | Iterable[int]) -> tuple[int, ...]:
    """One seed or more, each once."""
    seeds: Iterable[Any] = seed if isinstance(seed, Iterable) and not isinstance(seed, str | bytes) else [seed]
    found = list(dict.fromkeys(seeds))
    for each in found:
        if not isinstance(each, Integral) or isinstance(each, bool):
            raise ConfigError(f"a seed must be a whole number, not {each!r}; several are a list, such as [1, 2]")
    return tuple(map(int, found))


def names(method: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """One method or more, each once; None if nobody asked for any."""
    return None if method is None else (method,) if isinstance(method, str) else tuple(dict.fromkeys(method))


def by_line(start: str | Mapping[str, str] | None) -> dict[str, str]:
    """Line -> start, of a start for all lines or of one for each."""
    return starting.parse([start]) if isinstance(start, str) else dict(start or {})
