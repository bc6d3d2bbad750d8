"""Initial parameters of a run's fresh nets by line, and their record in the manifest."""

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
    """Parse ``["A=FILE", "B=FILE"]``, or ``["random"]`` for both lines, to a start for each line."""
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
    """Initial parameters of the lines' nets.

    Attributes:
        known: name and digest of each line's start, as recorded in a run's manifest.
        files: each line's start itself, if it is available.
    """

    known: dict[str, dict[str, str]]
    files: dict[str, Start]

    @property
    def digests(self) -> dict[str, str]:
        return {line: each["digest"] for line, each in self.known.items()}

    def fill(self, net: Normalized, spec: NetSpec, line: str) -> str | None:
        """Load a line's start into a fresh net; return a message about it, or None if the net stays random."""
        if self.digests[line] == "random":
            return None
        if line not in self.files:
            name = self.known[line]["name"]
            raise ConfigError(f"line {line} has yet to start from {name}; give it again with --start {line}=FILE")
        return starts.load(net, spec, self.files[line])


def find(
    given: Mapping[str, str], config: Config, default: str | None, recorded: Mapping[str, dict[str, str]] | None
) -> Starts:
    """Find the initial parameters for a run.

    Args:
        given: the start that the user asked for, by line.
        config: configuration with the nets; line B matters only for a pair.
        default: the preset's start; None if the user must give one.
        recorded: name and digest of the starts of the run to resume, by line; None for a new run.

    Raises:
        ConfigError: if a line is unknown, a start cannot be found, or one is missing.
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
        known.setdefault("B", known["A"])  # line B is not trained
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
    """Return recorded starts that can be found by name and have not changed; a missing one fails only when needed."""
    found = {}
    for line, known in recorded.items():
        with contextlib.suppress(ConfigError):
            if known["name"] in ("timm", "wheel"):
                found[line] = starts.resolve(known["name"], config.net_of(line))
    return {line: start for line, start in found.items() if start.digest == recorded[line]["digest"]}


def alike(starts: Starts, config: Config) -> bool:
    """Whether a pair's nets start from equal parameters and see the same labels, so that they differ too little."""
    digests = starts.digests
    same = digests["A"] == digests["B"] != "random" and config.net_of("A") == config.net_of("B")
    return same and config.recipe.shape == "pair" and config.recipe.share is None
