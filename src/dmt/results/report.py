"""What came out of runs as tables of text, read from their files alone."""

import statistics
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dmt import presets
from dmt.methods import catalogue
from dmt.results import guard, guard_summary, reading, tables
from dmt.results.reading import JobResult
from dmt.results.stage_results import StageResult, headline, preference
from dmt.runs.folder import Folder

__all__ = ["JobResult", "Report", "StageResult", "headline", "preference"]

SHOWN = 5
"""Lines of the guard in a text; the page holds all."""


@dataclass(frozen=True)
class Report:
    """Numbers per stage and seed of one or more runs. ``print`` it for tables."""

    jobs: tuple[JobResult, ...]

    @classmethod
    def read(cls, paths: Iterable[str | Path]) -> "Report":
        """From run folders; nothing is computed again. What two folders share counts once."""
        unique: dict[tuple[object, ...], JobResult] = {}
        for job in (job for path in paths for job in reading.read(Folder(Path(path)))):
            key = (job.data, job.changes, job.origin, job.method, job.last_place)
            if key not in unique or job.finished:  # of two copies of a run, the one that got further
                unique[key] = job
        return cls(tuple(unique.values()))

    def __str__(self) -> str:
        if not self.jobs:
            return "no method has started yet"
        longer = [jobs for jobs in self._groups() if any(stage.round for job in jobs for stage in job.stages)]
        titles = [f"{catalogue.get(jobs[0].method).title} on {self._name(jobs[0])}" for jobs in longer]
        return "\n".join(
            [
                self.summary(),
                *map(_rounds, titles, longer),
                *dict.fromkeys(line for job in self.jobs for line in job.folds),
                *self.endings(),
                *self.objections(),
                *self.errors(),
                *self.warnings(),
                *self.verdicts(),  # last, where a reader of a terminal looks first
            ]
        )

    def verdicts(self) -> list[str]:
        """A sentence on each method that learns from pseudo labels: is it better than its Baseline?"""
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
        """Of jobs whose rounds ended by validation, when and why."""
        several = len({self._name(job) for job in self.jobs}) > 1
        ended = [(f"{self._name(job)}: " if several else "", job) for job in self.jobs if job.ended is not None]
        return [f"{name}{catalogue.get(job.method).title}, seed {job.seed}: {job.ended}" for name, job in ended]

    def objections(self) -> list[str]:
        """Of pairs that ship one net alone, why."""
        several = len({self._name(job) for job in self.jobs}) > 1
        found = [
            (f"{self._name(job)}: " if several else "", job) for job in self.jobs if job.finished and job.objection
        ]
        return [f"{name}{catalogue.get(job.method).title}, seed {job.seed}: {job.objection}" for name, job in found]

    def errors(self) -> list[str]:
        """What is wrong with the images, if somebody trained on them anyway: once for all jobs on the same ones."""
        several = len({self._name(job) for job in self.jobs}) > 1
        found = [(f"{self._name(job)}: " if several else "", each) for job in self.jobs for each in job.warnings]
        return [f"warning: {name}the scores may be meaningless: {each}" for name, each in dict.fromkeys(found)]

    def warnings(self) -> list[str]:
        """What the guard found, one line each; what methods or rounds have in common is said once."""
        found = [line for jobs in self._kin().values() for line in guard_summary.told(jobs)]
        lines = [f"guard: {where}: {finding}" for where, finding in found]
        more = len(lines) - SHOWN
        rest = [f"guard: {more} more; dmt report RUN --out report.html shows all"] if more > 0 else []
        return [*lines[:SHOWN], *rest]

    def summary(self) -> str:
        """One row per data set, options and method: test scores as mean ± spread over seeds."""
        pairs = any(len(job.lines) > 1 for job in self.jobs)
        lines = ["A", "B"] if pairs else []
        title = "test accuracy of images, mean IoU of pixels, %: mean ± standard deviation over seeds"
        copies = ["ema", "both", "shipped"] if pairs else ["raw", "ema", "shipped"]
        scored = [*lines, *({"ema": "EMA", "shipped": "final"}.get(copy, copy) for copy in copies)]
        gains = ["gain", "single"] if pairs else ["gain"]
        rows = []
        for jobs in self._groups():
            method = jobs[0].method
            complete = [job for job in jobs if job.finished]
            seeds = f"{len(complete)}" if len(complete) == len(jobs) else f"{len(complete)} of {len(jobs)}"
            scores = [tables.spread([job.test_score("raw", line) for job in complete]) for line in lines]
            scores += [tables.spread([job.test_score(copy) for job in complete]) for copy in copies]
            bases = self._bases(complete)
            gained = [_gain(complete, bases), *([_single_gain(complete, bases)] if pairs else [])]
            name = self._name(jobs[0])
            rows.append([name, catalogue.get(method).title, seeds, *scores, *gained, _published(jobs[0])])
        table = tables.filled(title, ["data", "method", "seeds", *scored, *gains, "paper"], rows)
        shown = [str(column.header) for column in table.columns]
        return f"{tables.text(table)}{self._explained(shown)}\n{self._legend()}"

    def _explained(self, columns: Collection[str]) -> str:
        """What the columns of the summary are; of those that are shown."""
        gain = (
            "gain: over the Baseline's final model with the same seeds, for one seed with a 90 % bootstrap range over "
            "images"
        )
        notes = [f"final: of the {self._kept()} nets, the best on validation"]
        if "both" in columns:
            nets = ", ".join(name for name in ("A", "B", "EMA") if name in columns)
            notes = [
                f"{nets}: the {self._kept()} nets of a pair, individually; both: the mean of their probabilities, "
                f"which is the final model unless one net is clearly better on validation"
            ]
            gain += "; single: the gain of one net over one net (also used as gain if the Baseline has a single net)"
        notes += [gain] if "gain" in columns else []
        note = ";\n".join(notes) + "."
        if any(stage.outcome is not None and stage.shown != "test" for job in self.jobs for stage in job.stages):
            note += "\nThere are no test images: scores are on the validation images, which also chose the final model."
        return note

    def _kept(self) -> str:
        ways = {"last": "last", "best": "best round's"}
        kept = (job.keep if job.patience is None else "best" for job in self.jobs)
        return " or ".join(dict.fromkeys(ways[each] for each in kept))

    def _groups(self) -> list[list[JobResult]]:
        """Jobs that differ in nothing but the seed; a Baseline before what is compared with it."""
        groups = []
        for kin in self._kin().values():
            methods: dict[str, list[JobResult]] = {}
            for job in kin:
                methods.setdefault(job.method, []).append(job)
            groups += [
                jobs for _, jobs in sorted(methods.items(), key=lambda each: not catalogue.get(each[0]).baseline)
            ]
        return groups

    def _kin(self) -> dict[tuple[object, ...], list[JobResult]]:
        """Jobs that differ in nothing but method and seed."""
        kin: dict[tuple[object, ...], list[JobResult]] = {}
        for job in self.jobs:
            kin.setdefault((job.data, job.changes, job.origin), []).append(job)
        return kin

    def _bases(self, jobs: Sequence[JobResult]) -> list[JobResult]:
        """What these are compared with, as far as it is there."""
        return [base for job in jobs if (base := guard.base(job, self._like(job))) is not None]

    def _like(self, job: JobResult) -> list[JobResult]:
        return self._kin()[job.data, job.changes, job.origin]

    def _variants(self) -> list[tuple[str, ...]]:
        """Sets of changed options, in the order they appear."""
        return [changes for changes in dict.fromkeys(job.changes for job in self.jobs) if changes]

    def _name(self, job: JobResult) -> str:
        return f"{job.data} [{self._variants().index(job.changes) + 1}]" if job.changes else job.data

    def _legend(self) -> str:
        read = {entry.options.group for job in self.jobs if (entry := catalogue.get(job.method)).options is not None}
        told = [[each for each in changes if _group(each) in (None, *read)] for changes in self._variants()]
        lines = [f"[{number}] with {', '.join(changes)}" for number, changes in enumerate(told, start=1)]
        if any(_published(job).endswith(presets.MARK) for job in self.jobs):
            lines.append(f"{presets.MARK} published with another net, start, split or schedule: see docs/methods")
        return "".join(f"{line}\n" for line in lines)


def _group(change: str) -> str | None:
    """The group of a changed option ``group.option=value``; None if it is of all methods."""
    key = change.split("=", 1)[0]
    return key.split(".")[0] if "." in key else None


def _published(job: JobResult) -> str:
    """The paper's number, beside its own row only: under changed options it would compare different things."""
    preset = presets.PRESETS.get(job.data) if not job.changes else None
    return (preset and preset.published(job.method)) or "–"


def _gain(jobs: Sequence[JobResult], base: Sequence[JobResult]) -> str:
    """Over the Baseline of the same seed: what ships over what ships."""
    pairs = _compared(jobs, base)
    if not pairs:
        return "–"
    gains = [guard.difference(*pair) for pair in pairs]
    interval = guard.gain(*pairs[0]) if len(pairs) == 1 else None  # over images; of several seeds their spread is told
    told = "" if interval is None else f" ({interval.low:+.2f} to {interval.high:+.2f})"
    return ("+" if statistics.fmean(gains) >= 0 else "") + tables.spread(gains) + told


def _single_gain(jobs: Sequence[JobResult], base: Sequence[JobResult]) -> str:
    """The same for single nets, in the mean over lines."""
    gains = [guard.single_difference(*pair) for pair in _compared(jobs, base)]
    return ("+" if statistics.fmean(gains) >= 0 else "") + tables.spread(gains) if gains else "–"


def _compared(jobs: Sequence[JobResult], base: Sequence[JobResult]) -> list[tuple[JobResult, JobResult]]:
    """Jobs beside the finished Baselines of their seeds; a Baseline itself is compared with nothing."""
    before = {job.seed: job for job in base if job.finished}
    if not jobs or catalogue.get(jobs[0].method).baseline:
        return []
    return [(job, before[job.seed]) for job in jobs if job.seed in before]


def _rounds(title: str, jobs: Sequence[JobResult]) -> str:
    """Score, coverage and pseudo-label error round by round, averaged over seeds."""
    title = f"{title}, by stage (mean over seeds)"
    columns = (
        "stage", "raw", "EMA", "kept", "least kept class", "label error", "weighted", "weight right", "weight wrong",
    )  # fmt: skip
    rows = []
    names = list(dict.fromkeys(stage.title for job in jobs for stage in job.stages))
    for name in names:
        stages = [stage for job in jobs for stage in job.stages if stage.title == name and stage.outcome is not None]

        def mean(of: Callable[[StageResult], float | None], form: str, stages: list[StageResult] = stages) -> str:
            values = [value for value in map(of, stages) if value is not None]
            return format(statistics.fmean(values), form) if values else tables.UNKNOWN

        row = (
            name,
            mean(lambda stage: stage.score(stage.shown, "raw"), ".2f"),
            mean(lambda stage: stage.score(stage.shown, "ema"), ".2f"),
            mean(_kept, ".0%"),
            mean(_least_kept, ".0%"),
            mean(lambda stage: stage.audited("error_kept"), ".2f"),
            mean(lambda stage: stage.audited("error_kept_weighted"), ".2f"),
            mean(lambda stage: stage.audited("weight_right"), ".3f"),
            mean(lambda stage: stage.audited("weight_wrong"), ".3f"),
        )
        rows.append(row)
    judged = reading.judged(jobs)
    table = tables.text(tables.filled(title, columns, rows))
    note = f"label error: % of the kept pseudo labels that are wrong, plain and weighted; weights: mean; on {judged}\n"
    return table + (note if judged else "")


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
