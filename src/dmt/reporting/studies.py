"""Studies: jobs, from one or more runs, that can be compared because data set, options and origin are the same."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dmt import files, presets, run_files, schemas
from dmt.config import Config
from dmt.data.folders.photo_options import PhotoMaskOptions
from dmt.errors import DmtError
from dmt.methods import catalogue
from dmt.methods.method import Method, color_of
from dmt.results import guard, reading, stage_results
from dmt.results.job_results import JobResult, by_rule
from dmt.results.net_results import NetResult
from dmt.results.report import Report
from dmt.results.stage_results import StageResult
from dmt.runs.folder import Folder


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation of a number over seeds; the deviation is NaN for a single seed."""

    mean: float
    deviation: float
    count: int

    def __str__(self) -> str:
        if not self.count:
            return "–"
        return f"{self.mean:.2f}" if math.isnan(self.deviation) else f"{self.mean:.2f} ± {self.deviation:.2f}"

    @property
    def signed(self) -> str:
        return f"+{self}" if self.count and self.mean >= 0 else str(self).replace("-", "−")

    @property
    def cell(self) -> tuple[str, float]:
        """Text and sort key of a table cell."""
        return _unbroken(str(self)), self.mean

    @property
    def signed_cell(self) -> tuple[str, float]:
        return _unbroken(self.signed), self.mean


def _unbroken(spread: str) -> str:
    """Replace the space after ± so that a narrow cell can break before it only."""
    return spread.replace("± ", "±\xa0")


def spread(values: Iterable[float | None]) -> Spread:
    """Return mean and standard deviation of the finite values; None and NaN are left out."""
    found = [value for value in values if value is not None and math.isfinite(value)]
    if not found:
        return Spread(math.nan, math.nan, 0)
    return Spread(statistics.fmean(found), statistics.stdev(found) if len(found) > 1 else math.nan, len(found))


class Study:
    """Jobs that differ only in method and seed."""

    def __init__(self, name: str, jobs: Sequence[JobResult]) -> None:
        self.name, self.jobs = name, tuple(jobs)
        self.data, self.changes = jobs[0].data, jobs[0].changes

    @property
    def source(self) -> str:
        """Name of the preset or, for a user's images, of the runs."""
        return _name(self.jobs)

    @cached_property
    def folders(self) -> list[Path]:
        """Folders of the runs that hold the jobs."""
        return list(dict.fromkeys(job.run for job in self.jobs))

    @cached_property
    def config(self) -> Config | None:
        """The configuration of the runs, or None if this version does not know their preset or one of their options."""
        try:
            return reading.configuration_of(Folder(self.folders[0]))
        except DmtError:
            return None

    @cached_property
    def classes(self) -> list[str]:
        """Names of the classes; numbers in place of unknown names."""
        names = self.jobs[0].classes
        stages = [stage for job in self.jobs for stage in job.stages]
        measured = [len(score.get("per_class", ())) for stage in stages for score in shown_scores(stage).values()]
        labeled = [len(stage.labels["coverage"]["kept"]) for stage in stages if stage.labels is not None]
        count = max([len(names), *measured, *labeled])
        return [*names, *(str(number) for number in range(len(names), count))]

    @property
    def pixels(self) -> bool:
        """Whether it is about segmentation; unmeasured runs are known by their options."""
        measured = (each for job in self.jobs for stage in job.stages for each in shown_scores(stage).values())
        return any("mean_iou" in each for each in measured) or (
            self.unmeasured and self.config is not None and isinstance(self.config.data, PhotoMaskOptions)
        )

    @property
    def unmeasured(self) -> bool:
        """Whether jobs are finished but none has a score, since there are no images to measure on."""
        done = [job for job in self.jobs if job.finished]
        return bool(done) and all(math.isnan(score(job)) for job in done)

    @property
    def measure(self) -> str:
        return "mean IoU" if self.pixels else "accuracy"

    @cached_property
    def methods(self) -> list[str]:
        """Names of the methods in catalogue order, except that the Baseline comes first and the ceiling last."""
        return [method.name for method in sorted(self._known, key=lambda method: method.ceiling - method.baseline)]

    @cached_property
    def _known(self) -> list[Method]:
        there = {job.method for job in self.jobs}
        return [method for name, method in catalogue.METHODS.items() if name in there]

    @property
    def learners(self) -> list[str]:
        """Names of the methods that learn from unlabeled images: the default, then the catalogue in reverse.

        The verdict is about the first that is finished.
        """
        found = [method for method in reversed(self._known) if method.semi_supervised]
        return [method.name for method in sorted(found, key=lambda method: method is not catalogue.default())]

    @property
    def baseline(self) -> str | None:
        """Name of the Baseline, or None if it was not trained as a method of its own."""
        return next((method.name for method in self._known if method.baseline), None)

    @property
    def ceiling(self) -> Method | None:
        """The method that is trained with all labels, or None if it was not trained."""
        return next((method for method in self._known if method.ceiling), None)

    def of(self, method: str, finished: bool = True) -> list[JobResult]:
        return [job for job in self.jobs if job.method == method and (job.finished or not finished)]

    @property
    def split(self) -> str:
        """The split whose scores count: "test" or, without test images, "validation"."""
        shown = {stage.shown for job in self.jobs for stage in job.stages if stage.outcome is not None}
        return "validation" if shown == {"validation"} else "test"

    def base(self, job: JobResult) -> JobResult | None:
        """Return the reference that a job is compared with, or None.

        It is its seed's Baseline, or round 0 if no separate Baseline was trained.
        """
        return guard.base(job, self.jobs)

    def labels(self, job: JobResult) -> int | None:
        """Return how many labels a job was trained on, or None if unknown; the ceiling gets all of them."""
        if self.ceiling is not None and job.method == self.ceiling.name:
            return None if self.config is None else self.config.data.sizes.everything
        path = run_files.split(job.run, job.seed)
        if path.is_file():
            try:
                return len(files.read_json(path, schemas.SPLIT)["labeled"])
            except DmtError:
                return None
        return None if self.config is None else self.config.data.sizes.labeled


def studies(paths: Iterable[Path]) -> list[Study]:
    """Return the studies in some runs, under names that tell them apart."""
    found = Report.read(paths)
    groups: dict[tuple[object, ...], list[JobResult]] = {}
    for job in found.jobs:
        groups.setdefault((job.data, job.changes, job.origin), []).append(job)
    groups = {(*key, rule): jobs for key, kin in groups.items() for rule, jobs in by_rule(kin).items()}
    several = len({job.run for job in found.jobs}) > 1
    names = [_name(jobs, several) for jobs in groups.values()]
    result = []
    for number, (name, jobs) in enumerate(zip(names, groups.values(), strict=True)):
        again = names.count(name) > 1
        result.append(Study(f"{name} [{number + 1}]" if again else name, jobs))
    return result


def _name(jobs: Sequence[JobResult], several: bool = False) -> str:
    """Return the name of the preset or, for a user's images, of the runs; both if there are several runs."""
    runs = ", ".join(dict.fromkeys(job.run.name for job in jobs))
    if jobs[0].data in presets.OWN:
        return runs
    return f"{jobs[0].data} ({runs})" if several else jobs[0].data


def title(method: str) -> str:
    return catalogue.METHODS[method].title if method in catalogue.METHODS else method


def color(method: str) -> int:
    return catalogue.METHODS[method].color if method in catalogue.METHODS else color_of(method)


def shown_scores(stage: StageResult) -> dict[str, Any]:
    """Return a stage's scores on the split that counts, by copy of the net (raw, ema)."""
    return {} if stage.outcome is None else stage.outcome["scores"].get(stage.shown, {})


def score(job: JobResult) -> float:
    """Return the score of a job's final model in percent; NaN if it was not measured."""
    return job.test_score("shipped") if job.kept() else math.nan


def round_score(job: JobResult, number: int) -> float:
    """Return a job's score in one round: of the net that validation prefers or, for a pair, the mean over raw nets."""
    wanted = [stage for stage in job.stages if stage.round == number and shown_scores(stage)]
    nets = [(stage, copy) for stage in wanted for copy in stage.copies]
    if len(job.lines) > 1:
        nets = [(stage, "raw") for stage in wanted]
    elif nets:
        nets = [max(nets, key=lambda each: stage_results.preference(*each))]
    return spread(stage.score(stage.shown, copy) for stage, copy in nets).mean


def rounds(jobs: Iterable[JobResult]) -> list[int]:
    """Return the numbers of the rounds that were measured, in order."""
    return sorted({stage.round for job in jobs for stage in job.stages if stage.outcome is not None})


def per_class(nets: Iterable[NetResult]) -> np.ndarray:
    """Return the score of each class in percent, (C,): recall, or IoU for segmentation, averaged over these nets."""
    rows = [net.per_class(net.shown) for net in nets]
    return np.mean(rows, axis=0) if rows else np.zeros(0)
