"""What came out of runs, read from their files alone."""

import io
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from dmt import presets
from dmt.errors import RunError
from dmt.folder import Folder, Job
from dmt.methods.catalogue import METHODS
from dmt.training.journal import Journal


@dataclass(frozen=True)
class StageResult:
    """A stage and what its journal says; ``outcome`` is None until it is finished.

    Attributes:
        name, round: as in the plan.
        place: its folder's name.
        labels: the journal's line about pseudo labels, if the stage has any.
        outcome: scores, audit and cost.
    """

    name: str
    round: int
    place: str
    labels: dict[str, Any] | None
    outcome: dict[str, Any] | None

    def accuracy(self, split: str, copy: str) -> float | None:
        if self.outcome is None or split not in self.outcome["scores"]:
            return None
        return float(self.outcome["scores"][split][copy]["accuracy"])

    def audited(self, key: str) -> float | None:
        audit = None if self.outcome is None else self.outcome["audit"]
        value = None if audit is None else audit.get(key)
        return None if value is None else float(value)


@dataclass(frozen=True)
class JobResult:
    """One method with one seed."""

    data: str
    method: str
    seed: int
    stages: tuple[StageResult, ...]
    results: tuple[str, ...]

    @property
    def finished(self) -> bool:
        return all(stage.outcome is not None for stage in self.stages)

    def shipped(self) -> tuple[StageResult, str]:
        """The net to use: of the last stage of each line, raw or EMA, the one validation prefers; of equals the raw."""
        finals = [stage for stage in self.stages if stage.name in self.results and stage.outcome is not None]
        if not finals:
            raise RunError(f"{self.method} with seed {self.seed} is not finished; repeat the fit command to finish it")
        candidates = [(stage, copy) for stage in finals for copy in ("raw", "ema")]
        return max(candidates, key=lambda each: preference(*each))

    def test_accuracy(self, copy: str) -> float:
        """Test accuracy of the last stage; of two lines, their mean. ``copy``: raw, ema, or shipped."""
        if copy == "shipped":
            stage, chosen = self.shipped()
            return stage.accuracy("test", chosen) or math.nan
        finals = [stage for stage in self.stages if stage.name in self.results]
        return statistics.fmean(stage.accuracy("test", copy) or math.nan for stage in finals)


@dataclass(frozen=True)
class Report:
    """Numbers per stage and seed of one or more runs. ``print`` it for tables."""

    jobs: tuple[JobResult, ...]

    @classmethod
    def read(cls, paths: Iterable[str | Path]) -> "Report":
        """From run folders; nothing is computed again."""
        return cls(tuple(job for path in paths for job in _read(Folder(Path(path)))))

    def __str__(self) -> str:
        if not self.jobs:
            return "no method has started yet"
        parts = [self.summary()]
        parts += [_rounds(jobs) for jobs in self._groups() if any(len(job.stages) > 1 for job in jobs)]
        return "\n".join(parts)

    def summary(self) -> str:
        """One row per data set and method: test accuracy as mean ± spread over seeds."""
        table = _table("test accuracy, %: mean ± standard deviation over seeds", "data", "method", "seeds", "raw",
                       "EMA", "shipped", "gain", "paper")  # fmt: skip
        groups = self._groups()
        for jobs in groups:
            data, method = jobs[0].data, jobs[0].method
            complete = [job for job in jobs if job.finished]
            seeds = f"{len(complete)}" if len(complete) == len(jobs) else f"{len(complete)} of {len(jobs)}"
            scores = [spread([job.test_accuracy(copy) for job in complete]) for copy in ("raw", "ema", "shipped")]
            base = next((group for group in groups if (group[0].data, group[0].method) == (data, "baseline")), [])
            paper = presets.PRESETS[data].paper.get(method) if data in presets.PRESETS else None
            table.add_row(data, METHODS[method].title, seeds, *scores, _gain(complete, base),
                          "–" if paper is None else f"{paper:.2f}")  # fmt: skip
        return _text(table) + (
            "shipped: raw or EMA net, whichever the validation images prefer; gain: shipped, over Baseline with the "
            "same seeds.\n"
        )

    def _groups(self) -> list[list[JobResult]]:
        groups: dict[tuple[str, str], list[JobResult]] = {}
        for job in self.jobs:
            groups.setdefault((job.data, job.method), []).append(job)
        return list(groups.values())


def spread(values: Sequence[float]) -> str:
    """``mean ± standard deviation``; the mean alone for one value."""
    if not values:
        return "–"
    mean = f"{statistics.fmean(values):.2f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.2f}"


def _gain(jobs: Sequence[JobResult], base: Sequence[JobResult]) -> str:
    before = {job.seed: job.test_accuracy("shipped") for job in base if job.finished}
    gains = [job.test_accuracy("shipped") - before[job.seed] for job in jobs if job.seed in before]
    if not gains or jobs[0].method == "baseline":
        return "–"
    return ("+" if statistics.fmean(gains) >= 0 else "") + spread(gains)


def _rounds(jobs: Sequence[JobResult]) -> str:
    """Score, coverage and pseudo-label error round by round, averaged over seeds."""
    title = f"{METHODS[jobs[0].method].title} on {jobs[0].data}, by stage (mean over seeds)"
    table = _table(title, "stage", "test raw", "test EMA", "kept", "least kept class", "label error", "weighted",
                   "weight right", "weight wrong")  # fmt: skip
    names = list(dict.fromkeys(stage.name for job in jobs for stage in job.stages))
    for name in names:
        stages = [stage for job in jobs for stage in job.stages if stage.name == name and stage.outcome is not None]

        def mean(of: Callable[[StageResult], float | None], form: str, stages: list[StageResult] = stages) -> str:
            values = [value for value in map(of, stages) if value is not None]
            return format(statistics.fmean(values), form) if values else "–"

        table.add_row(
            name,
            mean(lambda stage: stage.accuracy("test", "raw"), ".2f"),
            mean(lambda stage: stage.accuracy("test", "ema"), ".2f"),
            mean(_kept, ".0%"),
            mean(_least_kept, ".0%"),
            mean(lambda stage: stage.audited("error_kept"), ".2f"),
            mean(lambda stage: stage.audited("error_kept_weighted"), ".2f"),
            mean(lambda stage: stage.audited("weight_right"), ".3f"),
            mean(lambda stage: stage.audited("weight_wrong"), ".3f"),
        )
    return _text(table)


def _kept(stage: StageResult) -> float | None:
    return None if stage.labels is None else stage.labels["kept"] / max(stage.labels["of"], 1)


def _least_kept(stage: StageResult) -> float | None:
    """Coverage of the class that fared worst: a class that vanishes from the pseudo labels shows here."""
    if stage.labels is None:
        return None
    coverage = stage.labels["coverage"]
    return min(
        kept / predicted if predicted else 0.0
        for kept, predicted in zip(coverage["kept"], coverage["predicted"], strict=True)
    )


def _read(folder: Folder) -> list[JobResult]:
    data = folder.manifest()["data"]
    return [_job(folder, data, job) for job in folder.jobs()]


def _job(folder: Folder, data: str, job: Job) -> JobResult:
    stages = []
    for outline in job.stages:
        lines = list(Journal(folder.stage(outline["place"]) / "journal.jsonl").read())
        labels = next((line for line in lines if line["kind"] == "labels"), None)
        outcome = next((line for line in lines if line["kind"] == "round"), None)
        stages.append(StageResult(outline["name"], outline["round"], outline["place"], labels, outcome))
    return JobResult(data, job.method, job.seed, tuple(stages), tuple(job.results))


def preference(stage: StageResult, copy: str) -> float:
    """How much the validation images like a net; fine-grained, since 200 images leave many ties otherwise."""
    assert stage.outcome is not None
    scores = stage.outcome["scores"].get("validation")
    return float("-inf") if scores is None else float(scores[copy]["fine_grained"])


def grid(title: str, columns: Sequence[str], rows: dict[str, list[float]]) -> str:
    """Named rows of percentages as a text table."""
    table = _table(title, "", *columns)
    for name, values in rows.items():
        table.add_row(name, *(f"{value:.2f}" for value in values))
    return _text(table)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=True)
    return table


def _text(table: Table) -> str:
    """A table as plain text, whatever the terminal; its title in one line above it."""
    console = Console(file=io.StringIO(), width=140, color_system=None)
    title, table.title = table.title, None
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return f"{title}\n{console.file.getvalue()}"
