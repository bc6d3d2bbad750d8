"""Reports: results of runs as numbers and as text, read from their files alone."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dmt import presets
from dmt.errors import ConfigError, RunError, unknown
from dmt.methods import catalogue
from dmt.results import comparisons, guard, guard_summary, narrow_tables, reading, report_tables, tables
from dmt.results.job_results import JobResult, by_rule
from dmt.results.stage_results import StageResult, headline, preference
from dmt.runs.folder import Folder

__all__ = ["JobResult", "Report", "StageResult", "headline", "preference"]

SHOWN = 5
"""Maximum number of guard lines in a text report; the HTML page has all."""


@dataclass(frozen=True, repr=False)
class Report:
    """Results of one or more runs. ``print`` it for tables; `scores`, `gain`, `compare`, `per_class` return numbers.

    Attributes:
        jobs: every method with every seed, finished or not; unfinished ones have no numbers.
    """

    jobs: tuple[JobResult, ...]

    @classmethod
    def read(cls, paths: str | Path | Iterable[str | Path]) -> "Report":
        """Read the results of run folders, without computing anything again. Jobs in several folders count once."""
        unique: dict[tuple[object, ...], JobResult] = {}
        several = [paths] if isinstance(paths, str | Path) else paths
        if not isinstance(several, Iterable):
            raise ConfigError(f"a report is read from run folders, as text or as Paths, not {paths!r}")
        for job in (job for path in several for job in reading.read(Folder(Path(path)))):
            key = (job.data, job.changes, job.origin, job.method, job.last_place, job.rule)
            if key not in unique or job.finished:  # of two copies of a job, the finished one
                unique[key] = job
        return cls(tuple(unique.values()))

    @property
    def scores(self) -> dict[str, dict[int, float]]:
        """Scores of the final models in percent, by method and seed: accuracy, or mean IoU for segmentation.

        They are measured on the test images or, if there are none, on the validation images; NaN if those have no
        labels.
        """
        self._require_alike()
        found: dict[str, dict[int, float]] = {job.method: {} for job in self.jobs}
        for job in self.jobs:
            if job.finished:
                found[job.method][job.seed] = job.test_score("shipped")
        return found

    def gain(self, method: str) -> dict[int, float]:
        """Return the points over the Baseline by seed, as in the verdict; seeds without a Baseline are left out."""
        jobs = self._of(method)
        pairs = report_tables.compared(jobs, self._bases(jobs))
        return {job.seed: guard.difference(job, base) for job, base in pairs}

    def compare(self, method: str, other: str) -> dict[int, float]:
        """Return the points of a method over another one by seed, for the seeds that both have finished.

        Final models are compared or, if only one of the methods has a pair of nets, single nets. Over the Baseline it
        is the `gain`.
        """
        pairs = comparisons.paired(self._of(method), self._of(other))
        return {job.seed: guard.difference(job, against) for job, against in pairs}

    def per_class(self, method: str) -> dict[str, float]:
        """Return the final model's score in each class by its name: the mean over seeds of recall, or IoU, in percent.

        NaN for a class that does not occur in the scored images; empty if nothing is finished.
        """
        shipped = [job.shipped() for job in self._of(method)]
        if not shipped:
            return {}
        rows = [net.per_class(net.shown) for net in shipped]
        names = [*self.jobs[0].classes, *(str(number) for number in range(len(self.jobs[0].classes), len(rows[0])))]
        return {name: statistics.fmean(values) for name, *values in zip(names, *rows, strict=False)}

    def _of(self, method: str) -> list[JobResult]:
        """Return the finished jobs of a method."""
        self._require_alike()
        if method not in {job.method for job in self.jobs}:
            raise unknown("method in this report", method, {job.method for job in self.jobs})
        return [job for job in self.jobs if job.method == method and job.finished]

    def _require_alike(self) -> None:
        """Refuse results on different data or with different options: a method has no single score then."""
        if len(self._kin()) > 1:
            named = ", ".join(dict.fromkeys(map(self._name, self.jobs)))
            raise RunError(f"this report is of several data sets or options: {named}; read one run, Report.read([RUN])")
        if any(self._divided(job) for job in self.jobs):
            raise RunError(
                "this report has nets of the last and of the best round of one method (--keep); read one run, "
                "Report.read([RUN])"
            )

    def __repr__(self) -> str:
        """Return a short summary: data, methods, scores, seeds."""
        rows: dict[str, list[str]] = {}
        for jobs in self._groups():
            done = [job for job in jobs if job.finished]
            score = tables.spread([job.test_score("shipped") for job in done])
            seeds = ", ".join(str(job.seed) for job in done)
            told = f"{score} (seed{'s' if len(done) > 1 else ''} {seeds})" if done else "not finished"
            rows.setdefault(self._name(jobs[0]), []).append(f"{jobs[0].method} {told}")
        told = "; ".join(f"{name}: {', '.join(each)}" for name, each in rows.items())
        return f"<Report {told or 'of nothing yet'}>"

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int | None = None) -> str:
        """Return the whole report as tables and sentences.

        Args:
            width: width of the terminal in characters; None for unlimited width, as in a file.
        """
        if not self.jobs:
            return "no method has started yet"
        longer = [jobs for jobs in self._groups() if any(stage.round for job in jobs for stage in job.stages)]
        titles = [f"{catalogue.get(jobs[0].method).title} on {self._name(jobs[0])}" for jobs in longer]
        said = [
            *dict.fromkeys(line for job in self.jobs for line in job.folds),
            *self.endings(),
            *self.objections(),
            *self.errors(),
            *self.warnings(),
            *self.verdicts(),  # last, where users of a terminal look first
        ]
        rounds = [report_tables.rounds(title, jobs, width) for title, jobs in zip(titles, longer, strict=True)]
        wrapped = [narrow_tables.sentences(line, width) for line in said]
        return "\n".join([self.summary(width), *self._between(width), *rounds, *wrapped])

    def verdicts(self) -> list[str]:
        """Return the verdict on each method that is compared with the Baseline."""
        groups = [jobs for jobs in self._groups() if catalogue.get(jobs[0].method).compared]
        several = len({self._name(jobs[0]) for jobs in groups}) > 1
        names = [f"{self._name(jobs[0])}: " if several else "" for jobs in groups]
        return [name + self._verdict(jobs) for name, jobs in zip(names, groups, strict=True)]

    def _verdict(self, jobs: Sequence[JobResult]) -> str:
        kin, bases = self._like(jobs[0]), self._bases(jobs)
        first = (
            bases and any(job.finished for job in jobs) and not any(catalogue.get(job.method).baseline for job in kin)
        )
        return guard.verdict(jobs, bases) + ("; Baseline is round 0 of the same run" if first else "")

    def endings(self) -> list[str]:
        """Return a sentence on each job whose rounds were ended early by validation."""
        several = len({self._name(job) for job in self.jobs}) > 1
        ended = [(f"{self._name(job)}: " if several else "", job) for job in self.jobs if job.ended is not None]
        return [f"{name}{catalogue.get(job.method).title}, seed {job.seed}: {job.ended}" for name, job in ended]

    def objections(self) -> list[str]:
        """Return a sentence on each pair of which one net is used alone."""
        several = len({self._name(job) for job in self.jobs}) > 1
        found = [
            (f"{self._name(job)}: " if several else "", job) for job in self.jobs if job.finished and job.objection
        ]
        return [f"{name}{catalogue.get(job.method).title}, seed {job.seed}: {job.objection}" for name, job in found]

    def errors(self) -> list[str]:
        """Return the errors in images that jobs were trained on anyway, once for all jobs on the same images."""
        several = len({self._name(job) for job in self.jobs}) > 1
        found = [(f"{self._name(job)}: " if several else "", each) for job in self.jobs for each in job.warnings]
        return [f"warning: {name}the scores may be meaningless: {each}" for name, each in dict.fromkeys(found)]

    def warnings(self) -> list[str]:
        """Return the guard's findings, one line each; those that methods share or rounds repeat appear once."""
        found = [line for jobs in self._kin().values() for line in guard_summary.told(jobs)]
        lines = [f"guard: {where}: {finding}" for where, finding in found]
        more = len(lines) - SHOWN
        rest = [f"guard: {more} more; dmt report RUN --out report.html shows all"] if more > 0 else []
        return [*lines[:SHOWN], *rest]

    def summary(self, width: int | None = None) -> str:
        """Return a table of scores as mean ± standard deviation over seeds, by data set, options and method."""
        groups = [report_tables.Group(self._name(jobs[0]), jobs, self._bases(jobs)) for jobs in self._groups()]
        return f"{report_tables.summary(groups, width)}\n{narrow_tables.sentences(self._legend(), width)}"

    def _between(self, width: int | None) -> list[str]:
        """Return the table that compares the best method with each of the others, if there are two or more."""
        alike = [jobs for kin in self._kin().values() for jobs in by_rule(kin).values()]
        named = [(next(filter(self._divided, jobs), jobs[0]), comparisons.of_best(jobs)) for jobs in alike]
        found = [(self._name(job), each) for job, each in named if each]
        return [report_tables.between(found, width, several=len(alike) > 1)] if found else []

    def _groups(self) -> list[list[JobResult]]:
        """Group jobs that differ only in the seed; a Baseline comes before the jobs that are compared with it."""
        groups = []
        for kin in self._kin().values():
            methods: dict[tuple[str, str], list[JobResult]] = {}
            for job in kin:
                methods.setdefault((job.method, job.rule), []).append(job)
            groups += [
                jobs for _, jobs in sorted(methods.items(), key=lambda each: not catalogue.get(each[0][0]).baseline)
            ]
        return groups

    def _divided(self, job: JobResult) -> bool:
        """Whether other jobs of the method, with the same options, use another round's nets."""
        return any(each.method == job.method and each.rule != job.rule for each in self._like(job))

    def _kin(self) -> dict[tuple[object, ...], list[JobResult]]:
        """Group jobs that differ only in method and seed."""
        kin: dict[tuple[object, ...], list[JobResult]] = {}
        for job in self.jobs:
            kin.setdefault((job.data, job.changes, job.origin), []).append(job)
        return kin

    def _bases(self, jobs: Sequence[JobResult]) -> list[JobResult]:
        """Return the references of jobs, as far as there are any."""
        return [base for job in jobs if (base := guard.base(job, self._like(job))) is not None]

    def _like(self, job: JobResult) -> list[JobResult]:
        return self._kin()[job.data, job.changes, job.origin]

    def _variants(self) -> list[tuple[str, ...]]:
        """Return the distinct sets of changed options in order of appearance."""
        return [changes for changes in dict.fromkeys(job.changes for job in self.jobs) if changes]

    def _name(self, job: JobResult) -> str:
        name = job.data
        if name in presets.OWN and len({each.origin for each in self.jobs if each.data == name}) > 1:
            name = f"{name} {job.run.name}"  # folders of images, told apart by their runs
        if self._divided(job):
            name = f"{name}, {job.rule} round"
        return f"{name} [{self._variants().index(job.changes) + 1}]" if job.changes else name

    def _legend(self) -> str:
        read = {entry.options.group for job in self.jobs if (entry := catalogue.get(job.method)).options is not None}
        told = [[each for each in changes if _group(each) in (None, *read)] for changes in self._variants()]
        lines = [f"[{number}] with {', '.join(changes)}" for number, changes in enumerate(told, start=1)]
        if any(report_tables.published(job).endswith(presets.MARK) for job in self.jobs):
            lines.append(f"{presets.MARK} published with another net, start, split or schedule: see docs/methods")
        return "".join(f"{line}\n" for line in lines)


def _group(change: str) -> str | None:
    """Return the group of a changed option ``group.option=value``; None for an option of all methods."""
    key = change.split("=", 1)[0]
    return key.split(".")[0] if "." in key else None
