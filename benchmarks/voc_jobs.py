"""The jobs of the runs that `voc_record` records, and how they compare: with a Baseline, and with each other."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dmt import files, run_files
from dmt.methods import catalogue
from dmt.results import comparisons, guard, reading
from dmt.results.job_results import JobResult
from dmt.results.stage_results import StageResult
from dmt.runs.folder import Folder


@dataclass(frozen=True)
class Recorded:
    """A job and its labels.

    Attributes:
        run: name of the run's folder.
        job: the job without its unfinished stages.
        begun: all of its stages.
        labels: values that identify the labeled images and those it is scored on.
    """

    run: str
    job: JobResult
    begun: tuple[StageResult, ...]
    labels: tuple[object, ...]

    @property
    def finished(self) -> bool:
        return len(self.job.stages) == len(self.begun)


def jobs_of(path: Path) -> list[Recorded]:
    """Return all jobs of a run with at least one finished stage."""
    folder, found = Folder(path), []
    manifest = folder.manifest()
    for job in reading.read(folder):
        stages = tuple(stage for stage in job.stages if stage.outcome is not None)
        last = {stage.line: stage.name for stage in stages}
        split = files.read_json(run_files.split(path, job.seed)) if stages else {}
        labels = (manifest["data"], manifest["images"], job.seed, *split.get("labeled", ()))
        done = replace(job, stages=stages, results=tuple(dict.fromkeys(last.values())))
        if stages:
            found.append(Recorded(path.name, done, job.stages, labels))
    return found


def gain(job: JobResult, peers: Iterable[Recorded]) -> dict[str, Any]:
    """Return the gain over the best Baseline, compared as in a verdict; empty without a Baseline.

    The share of the gap is that of single nets: an Oracle is one net, and an ensemble is better than one net.
    """
    peers = [each for each in peers if each.finished]
    base = _best(each for each in peers if catalogue.get(each.job.method).baseline)
    oracle = _best(each for each in peers if catalogue.get(each.job.method).ceiling)
    if base is None or not set(job.lines) & set(base.job.lines):
        return {}
    points, interval = guard.difference(job, base.job), guard.gain(job, base.job)
    found: dict[str, Any] = {"baseline": {"run": base.run, "score": base.job.test_score("raw")}, "gain": points}
    if interval is not None:
        found["gain_range"] = [interval.low, interval.high]
    gap = 0.0 if oracle is None else guard.single_difference(oracle.job, base.job)
    closed = guard.single_difference(job, base.job)
    return found | ({"gap": gap, "gap_closed": closed / gap} if gap > 0 else {})


def _best(found: Iterable[Recorded]) -> Recorded | None:
    return max(found, key=lambda each: each.job.test_score("raw"), default=None)


def between(jobs: Sequence[Recorded]) -> list[dict[str, Any]]:
    """Compare all pairs of finished methods with the same labels and seed, in any of the runs, the better one first."""
    done = [each for each in jobs if each.finished and catalogue.get(each.job.method).compared]
    done.sort(key=lambda each: -each.job.test_score("shipped"))
    return [_over(*pair) for pair in itertools.combinations(done, 2) if pair[0].labels == pair[1].labels]


def _over(first: Recorded, second: Recorded) -> dict[str, Any]:
    found = comparisons.compare([(first.job, second.job)])
    sides = [{"run": each.run, "method": each.job.method} for each in (first, second)]
    row = {"seed": first.job.seed, "method": sides[0], "over": sides[1], "points": found.mean, "single": found.single}
    return row | ({} if found.interval is None else {"range": [found.interval.low, found.interval.high]})
