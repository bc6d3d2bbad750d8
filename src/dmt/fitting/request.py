"""The user's request for a run, and the prepared run once the data are known."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any

import torch

from dmt import run_files
from dmt.config import Config
from dmt.errors import ConfigError
from dmt.methods import catalogue
from dmt.presets import Preset
from dmt.runs import starting


@dataclass(frozen=True)
class Request:
    """What the user asked for, as far as it may affect what is trained; how and where is in `Conditions`.

    Attributes:
        data: a folder of images, or the name of a preset.
        out: the run's folder.
        methods: names of methods; None for the default with these data.
        seeds: each seed determines a split and all random numbers.
        settings: option -> value; ``group.option`` for those of one method.
        starts: line -> what its fresh nets start from.
        baseline: whether to train a Baseline beside methods, to measure their gain.
        keep: which round's nets are used, the "best" or the "last"; None to leave it unchanged.
        budget: seconds that the schedule of a new run on a user's folder has to fit.
        anyway: whether to train on a user's folder in spite of errors in it.
        folds: whether cross-validation may choose learning rates, lengths, γ and the method of a new run on a user's
            folder.
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
        """Return the requested methods, or the usual ones, and with them the Baseline unless it is turned off."""
        wanted = usual if self.methods is None else self.methods
        return tuple(catalogue.with_baseline(wanted)) if self.baseline else wanted


@dataclass(frozen=True)
class Prepared:
    """A request with everything that was decided for it.

    Attributes:
        preset: the preset of the data, which also defines what nets start from by default.
        config: all options, including the requested ones.
        methods: names of all methods to train.
        images: a user's folder; None for a data set.
        notes: lines about automatic choices.
        warnings: errors in a user's folder.
        search: the choices of cross-validation and all trials, for the manifest.
        pool: how similar the unlabeled photos of a user are to the labeled ones.
        shortened: by how much a budget shortened the training of the first nets, if so much that gains over them are
            doubtful, else empty.
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
        """Lines to show to the user before the run begins."""
        return (*self.notes, *(f"warning: {each}" for each in self.warnings))


def several(seed: int | Iterable[int]) -> tuple[int, ...]:
    """Return one or more seeds as a tuple without duplicates."""
    seeds: Iterable[Any] = seed if isinstance(seed, Iterable) and _several(seed) else [seed]
    found = list(dict.fromkeys(seeds))
    for each in found:
        if not isinstance(each, Integral) or isinstance(each, bool):
            raise ConfigError(f"a seed must be a whole number, not {each!r}; several are a list, such as [1, 2]")
    return tuple(map(int, found))


def names(method: str | Iterable[str] | None) -> tuple[str, ...] | None:
    """Return one or more methods as a tuple without duplicates, or None if none were requested."""
    if method is None:
        return None
    found: tuple[Any, ...] = (method,) if isinstance(method, str) or not _several(method) else tuple(method)
    if not all(isinstance(each, str) for each in found):
        raise ConfigError(
            f"method must be the name of a method, or a list of names, not {method!r}; see dmt list methods"
        )
    return tuple(dict.fromkeys(found))


def data(value: str | Path) -> str | Path:
    """Return what to train on, the name of a preset or a folder, and refuse what can be neither."""
    return value if isinstance(value, str) and value else folder("data", value)


def folder(name: str, value: str | Path) -> Path:
    """Return a folder that is given as text or as a path, and refuse anything else.

    Args:
        name: the argument, for the error message.
    """
    if not isinstance(value, str | Path) or not str(value):
        raise ConfigError(f"{name} must be a folder, as text or as a Path, not {value!r}")
    return Path(value)


def device(name: str | torch.device) -> str:
    """Return the name of a device, which may also be given as one of torch's devices."""
    if not isinstance(name, str | torch.device):
        raise ConfigError(f"device must be auto, cpu, cuda or cuda:N, not {name!r}")
    return str(name)


def require_switches(**values: object) -> None:
    """Refuse arguments that are neither true nor false: the text "no", for example, counts as true in Python."""
    for name, value in values.items():
        if not isinstance(value, bool):
            raise ConfigError(f"{name} must be True or False, not {value!r}")


def donors(folders: str | Path | Iterable[str | Path]) -> tuple[Path, ...]:
    """Return one or more run folders as paths, and refuse what is no run folder."""
    given: Iterable[Any] = [folders] if isinstance(folders, str | Path) or not _several(folders) else folders
    found = tuple(folder("each of donors", each) for each in given)
    for each in found:
        if not (each / run_files.MANIFEST).is_file():
            raise ConfigError(f"donors: there is no run in {each}; give run folders that dmt fit has made")
    return found


def by_line(start: str | Path | Mapping[str, str | Path] | None) -> dict[str, str]:
    """Return a mapping from line to start, given a start for all lines or such a mapping."""
    if isinstance(start, str):
        return starting.parse([start])
    by = {} if start is None else dict.fromkeys(starting.LINES, start) if isinstance(start, Path) else start
    if not isinstance(by, Mapping) or not all(isinstance(each, str | Path) for each in by.values()):
        raise ConfigError(
            f"start must be random, timm, wheel or a file, or these by line, as in {{'A': 'a.pth', 'B': 'b.pth'}}, "
            f"not {start!r}"
        )
    return {line: os.fspath(each) for line, each in by.items()}


def _several(value: object) -> bool:
    """Return whether a value is a collection; text in bytes is not."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)
