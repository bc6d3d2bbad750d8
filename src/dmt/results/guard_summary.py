"""Summary of the guard's findings on several jobs: those that methods share or rounds repeat are reported once."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from dmt.methods import catalogue
from dmt.results import guard
from dmt.results.guard import Finding
from dmt.results.job_results import JobResult
from dmt.results.stage_results import StageResult


@dataclass
class _Group:
    """Findings that differ only in their numbers, with the places where they were made."""

    title: str
    first: Finding
    rounds: list[tuple[str, int]] = field(default_factory=list)  # (line, round) of findings about a net
    seeds: list[int] = field(default_factory=list)

    def add(self, stage: StageResult | None, seed: int) -> None:
        if stage is not None:
            self.rounds.append((stage.line, stage.round))
        self.seeds.append(seed)

    def told(self) -> tuple[str, Finding]:
        stages = _ranges(self.rounds)
        seeds = sorted(set(self.seeds))
        where = f"{self.title} {stages}".rstrip() + f", seed{'s' if len(seeds) > 1 else ''} {_numbers(seeds)}"
        if len(self.seeds) == 1:
            return where, self.first
        parts = [self.first.where, f"seed {self.seeds[0]}" if len(seeds) > 1 else ""]
        return where, replace(self.first, text=f"first in {' of '.join(filter(None, parts))}: {self.first.text}")


def told(jobs: Sequence[JobResult]) -> list[tuple[str, Finding]]:
    """Return (place, finding) for jobs that differ only in method and seed.

    With several seeds, the verdict says whether there is a gain, and findings about the gain of one seed are left out:
    that seed may just be unlucky.
    """
    groups: dict[tuple[str, ...], _Group] = {}
    known: set[tuple[str, str]] = set()
    for job in jobs:
        alone = sum(each.method == job.method for each in jobs) == 1
        title = catalogue.get(job.method).title
        stages = {stage.title: stage for stage in job.stages}
        for finding in guard.findings(job, guard.base(job, jobs) if alone else None):
            stage = stages.get(finding.where)
            said = (f"{title} {job.last_place}" if stage is None else stage.place, finding.text)
            if said not in known:  # methods may share stages
                known.add(said)
                key = (title, finding.kind, finding.about, finding.remedy)
                groups.setdefault(key, _Group(title, finding)).add(stage, job.seed)
    return [group.told() for group in groups.values()]


def _ranges(rounds: Iterable[tuple[str, int]]) -> str:
    """Format lines and rounds as 'A1–A3, B2'."""
    lines = itertools.groupby(sorted(set(rounds)), key=lambda each: each[0])
    return ", ".join(_numbers([number for _, number in numbers], line) for line, numbers in lines)


def _numbers(values: Sequence[int], line: str = "") -> str:
    """Format sorted numbers as '1–3, 5', each prefixed with the line."""
    runs = itertools.groupby(enumerate(values), key=lambda each: each[1] - each[0])
    parts = []
    for run in ([f"{line}{value}" for _, value in run] for _, run in runs):
        parts += [f"{run[0]}–{run[-1]}"] if len(run) > 2 else run
    return ", ".join(parts)
