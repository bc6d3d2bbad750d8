"""Where the fresh nets of a run start from, line by line, and how a run remembers it."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from dmt.config import Config
from dmt.errors import ConfigError
from dmt.models import starts
from dmt.models.build import NetSpec, Normalized
from dmt.models.starts import Start

LINES = ("A", "B")
RANDOM = {line: {"name": "random", "digest": "random"} for line in LINES}


def parse(texts: list[str]) -> dict[str, str]:
    """``["A=FILE", "B=FILE"]``, or ``["random"]`` for both lines, to line -> start."""
    given: dict[str, str] = {}
    for text in texts:
        line, equals, start = text.partition("=")
        if equals and line in LINES:
            given[line] = start
        else:
            given |= dict.fromkeys(LINES, text)
    return given


@dataclass(frozen=True)
class Starts:
    """What the lines start from.

    Attributes:
        known: line -> name and digest, as a run's manifest keeps them.
        files: line -> the start itself, where it was given.
    """

    known: dict[str, dict[str, str]]
    files: dict[str, Start]

    @property
    def digests(self) -> dict[str, str]:
        return {line: each["digest"] for line, each in self.known.items()}

    def fill(self, net: Normalized, spec: NetSpec, line: str) -> str | None:
        """Load the line's start into a fresh net; a line for people, or None if it stays random."""
        if self.digests[line] == "random":
            return None
        if line not in self.files:
            name = self.known[line]["name"]
            raise ConfigError(f"line {line} has yet to start from {name}; give it again with --start {line}=FILE")
        return starts.load(net, spec, self.files[line])


def find(
    given: Mapping[str, str], config: Config, default: str | None, recorded: Mapping[str, dict[str, str]] | None
) -> Starts:
    """The starts of a run.

    Args:
        given: line -> what the user asked for.
        config: its nets; line B matters only for a pair.
        default: what the preset starts from; None if that must be given.
        recorded: what a run to resume was started from.
    """
    for line in given:
        if line not in LINES:
            raise ConfigError(f"a start is for line A or B, not '{line}'; e.g. --start A=resnet101.pth")
    if recorded is None and default not in (None, "random"):
        given = dict.fromkeys(LINES, default) | dict(given)
    found = {line: starts.resolve(text, config.net_of(line)) for line, text in given.items()}
    known = {line: _record(start) for line, start in found.items()}
    if recorded is not None:
        return Starts(dict(recorded) | known, _again(recorded, config) | found)
    if default is not None:
        known = {
            line: _record(starts.resolve(default, config.net_of(line))) for line in LINES if line not in known
        } | known
    if config.recipe.shape != "pair" and "A" in known:
        known.setdefault("B", known["A"])  # nobody trains it
    lost = [line for line in LINES if line not in known]
    if lost:
        example = " ".join(f"--start {line}=FILE" for line in lost)
        raise ConfigError(
            f"{config.net} starts from published parameters here: give {example} "
            f"(FILE: a .pth of its encoder, or timm, or wheel), or --start random"
        )
    return Starts(known, found)


def _record(start: Start) -> dict[str, str]:
    return {"name": start.name, "digest": start.digest}


def _again(recorded: Mapping[str, dict[str, str]], config: Config) -> dict[str, Start]:
    """Starts that a run can find by their names alone; if one is gone, that matters only where it is still needed."""
    found = {}
    for line, known in recorded.items():
        with contextlib.suppress(ConfigError):
            if known["name"] in ("timm", "wheel"):
                found[line] = starts.resolve(known["name"], config.net_of(line))
    return {line: start for line, start in found.items() if start.digest == recorded[line]["digest"]}


def alike(starts: Starts, config: Config) -> bool:
    """Whether the two nets of a pair begin as one: then they differ too little, unless their labels do."""
    digests = starts.digests
    same = digests["A"] == digests["B"] != "random" and config.net_of("A") == config.net_of("B")
    return same and config.recipe.shape == "pair" and config.recipe.share is None
