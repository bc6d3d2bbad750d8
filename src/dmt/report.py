"""What came out of runs, read from their files alone."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dmt import config as configuration
from dmt import presets, starting, tables
from dmt.errors import RunError
from dmt.folder import Folder, Job, plain
from dmt.methods.catalogue import METHODS
from dmt.training.journal import Journal

FROM_FOLDER = frozenset({"classes", "palette", "labels", "unlabeled"})  # of own images: the folder says them


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

    def score(self, split: str, copy: str) -> float | None:
        """Accuracy of images, mean IoU of pixels; None for what was not measured."""
        scores = {} if self.outcome is None else self.outcome["scores"].get(split, {})
        return headline(scores[copy]) if copy in scores else None

    @property
    def shown(self) -> str:
        """The images whose score counts: test or, where there are none, validation."""
        scores = {} if self.outcome is None else self.outcome["scores"]
        return "validation" if "test" not in scores and "validation" in scores else "test"

    @property
    def copies(self) -> list[str]:
        """Which nets the stage kept: raw and maybe ema. Without any score, raw is all that is known."""
        if self.outcome is None:
            return []
        return list(self.outcome["scores"].get(self.shown, ["raw"]))

    def audited(self, key: str) -> float | None:
        audit = None if self.outcome is None else self.outcome["audit"]
        value = None if audit is None else audit.get(key)
        return None if value is None else float(value)


@dataclass(frozen=True)
class JobResult:
    """One method with one seed.

    Attributes:
        data: the preset's name.
        changes: options that differ from the preset, as ``key=value``; results under different options do not mix.
        results: names of the last stage of each line.
        origin: what the nets started from and, of own images, which they were; different origins do not mix either.
    """

    data: str
    method: str
    seed: int
    stages: tuple[StageResult, ...]
    results: tuple[str, ...]
    changes: tuple[str, ...] = ()
    origin: str = ""

    @property
    def finished(self) -> bool:
        return all(stage.outcome is not None for stage in self.stages)

    def shipped(self) -> tuple[StageResult, str]:
        """The net to use: of the last stage of each line, raw or EMA, the one validation prefers; of equals the raw."""
        finals = [stage for stage in self.stages if stage.name in self.results and stage.outcome is not None]
        if not finals:
            raise RunError(f"{self.method} with seed {self.seed} is not finished; repeat the fit command to finish it")
        candidates = [(stage, copy) for stage in finals for copy in stage.copies]
        return max(candidates, key=lambda each: preference(*each))

    @property
    def lines(self) -> tuple[str, ...]:
        """Its lines of nets, ("A",) or ("A", "B")."""
        return tuple(name[0] for name in self.results)

    def test_score(self, copy: str, lines: Sequence[str] = ("A", "B")) -> float:
        """Test score of the last stage; of two lines, their mean. ``copy``: raw, ema, or shipped.

        Where there are no test images, it is the score of the validation images.
        """
        if copy == "shipped":
            stage, chosen = self.shipped()
            return _number(stage.score(stage.shown, chosen))
        finals = [stage for stage in self.stages if stage.name in self.results and stage.name[0] in lines]
        return statistics.fmean(_number(stage.score(stage.shown, copy)) for stage in finals) if finals else math.nan


@dataclass(frozen=True)
class Report:
    """Numbers per stage and seed of one or more runs. ``print`` it for tables."""

    jobs: tuple[JobResult, ...]

    @classmethod
    def read(cls, paths: Iterable[str | Path]) -> "Report":
        """From run folders; nothing is computed again. What two folders share counts once."""
        unique: dict[tuple[object, ...], JobResult] = {}
        for job in (job for path in paths for job in _read(Folder(Path(path)))):
            key = (job.data, job.changes, job.origin, job.method, job.stages[-1].place)
            if key not in unique or job.finished:  # of two copies of a run, the one that got further
                unique[key] = job
        return cls(tuple(unique.values()))

    def __str__(self) -> str:
        if not self.jobs:
            return "no method has started yet"
        longer = [jobs for jobs in self._groups() if any(stage.round for job in jobs for stage in job.stages)]
        titles = [f"{METHODS[jobs[0].method].title} on {self._name(jobs[0])}" for jobs in longer]
        return "\n".join([self.summary(), *map(_rounds, titles, longer)])

    def summary(self) -> str:
        """One row per data set, options and method: test scores as mean ± spread over seeds."""
        pairs = any(len(job.lines) > 1 for job in self.jobs)
        lines = ["A", "B"] if pairs else []
        title = "test accuracy of images, mean IoU of pixels, %: mean ± standard deviation over seeds"
        scored = [*lines, "mean of both" if pairs else "raw", "EMA", "shipped"]
        table = tables.table(title, "data", "method", "seeds", *scored, "gain", "paper")
        for jobs in self._groups():
            method = jobs[0].method
            complete = [job for job in jobs if job.finished]
            seeds = f"{len(complete)}" if len(complete) == len(jobs) else f"{len(complete)} of {len(jobs)}"
            scores = [tables.spread([job.test_score("raw", line) for job in complete]) for line in lines]
            scores += [tables.spread([job.test_score(copy) for job in complete]) for copy in ("raw", "ema", "shipped")]
            gain = _gain(complete, self._baseline(jobs[0]))
            table.add_row(self._name(jobs[0]), METHODS[method].title, seeds, *scores, gain, _published(jobs[0]))
        note = (
            "shipped: of the last nets, the one that the validation images prefer; gain: over Baseline with the same "
            "seeds" + (", for a pair mean over mean." if pairs else ".")
        )
        if any(stage.outcome is not None and stage.shown != "test" for job in self.jobs for stage in job.stages):
            note += (
                "\nWithout test images the scores are those of the validation images, which also chose the shipped net."
            )
        return f"{tables.text(table)}{note}\n{self._legend()}"

    def _groups(self) -> list[list[JobResult]]:
        """Jobs that differ in nothing but the seed."""
        groups: dict[tuple[object, ...], list[JobResult]] = {}
        for job in self.jobs:
            groups.setdefault((job.data, job.changes, job.origin, job.method), []).append(job)
        return list(groups.values())

    def _baseline(self, like: JobResult) -> list[JobResult]:
        kin = (like.data, like.changes, like.origin)
        return [job for job in self.jobs if (job.data, job.changes, job.origin) == kin and job.method == "baseline"]

    def _variants(self) -> list[tuple[str, ...]]:
        """Sets of changed options, in the order they appear."""
        return [changes for changes in dict.fromkeys(job.changes for job in self.jobs) if changes]

    def _name(self, job: JobResult) -> str:
        return f"{job.data} [{self._variants().index(job.changes) + 1}]" if job.changes else job.data

    def _legend(self) -> str:
        lines = [f"[{number}] with {', '.join(changes)}" for number, changes in enumerate(self._variants(), start=1)]
        return "".join(f"{line}\n" for line in lines)


def _published(job: JobResult) -> str:
    """The paper's number, beside its own row only: under changed options it would compare different things."""
    paper = presets.PRESETS[job.data].paper if job.data in presets.PRESETS and not job.changes else {}
    return f"{paper[job.method]:.2f}" if job.method in paper else "–"


def _gain(jobs: Sequence[JobResult], base: Sequence[JobResult]) -> str:
    """Over the Baseline of the same seed: shipped net over shipped net or, with pairs, line by line in the mean."""
    before = {job.seed: job for job in base if job.finished}
    gains = [_difference(job, before[job.seed]) for job in jobs if job.seed in before]
    if not gains or jobs[0].method == "baseline":
        return "–"
    return ("+" if statistics.fmean(gains) >= 0 else "") + tables.spread(gains)


def _difference(job: JobResult, base: JobResult) -> float:
    if len(base.lines) == 1 and len(job.lines) == 1:
        return job.test_score("shipped") - base.test_score("shipped")
    common = [line for line in job.lines if line in base.lines]
    return job.test_score("raw", common) - base.test_score("raw", common)


def _rounds(title: str, jobs: Sequence[JobResult]) -> str:
    """Score, coverage and pseudo-label error round by round, averaged over seeds."""
    title = f"{title}, by stage (mean over seeds)"
    table = tables.table(title, "stage", "raw", "EMA", "kept", "least kept class", "label error", "weighted",
                   "weight right", "weight wrong")  # fmt: skip
    names = list(dict.fromkeys(stage.name for job in jobs for stage in job.stages))
    for name in names:
        stages = [stage for job in jobs for stage in job.stages if stage.name == name and stage.outcome is not None]

        def mean(of: Callable[[StageResult], float | None], form: str, stages: list[StageResult] = stages) -> str:
            values = [value for value in map(of, stages) if value is not None]
            return format(statistics.fmean(values), form) if values else "–"

        table.add_row(
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
    return tables.text(table)


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
    manifest = folder.manifest()
    changes = _changes(manifest["data"], manifest["config"])
    starts = {line: start["digest"] for line, start in manifest.get("starts", starting.RANDOM).items()}
    preset = presets.PRESETS.get(manifest["data"])
    if preset is not None and preset.start != "random" and "random" in starts.values():
        changes = (*changes, "start=random")  # the paper's rows start from published parameters
    origin = f"{starts} {manifest['images'] if manifest['data'] in presets.OWN else ''}"
    return [replace(_job(folder, manifest["data"], changes, job), origin=origin) for job in folder.jobs()]


def _changes(data: str, options: dict[str, Any]) -> tuple[str, ...]:
    """Options that differ from those of the preset, or all of them if it is not known here."""
    known = plain(configuration.flat(presets.PRESETS[data].config)) if data in presets.PRESETS else {}
    told = FROM_FOLDER if data in presets.OWN else frozenset()
    changed = {key: value for key, value in options.items() if key not in known or known[key] != value}
    return tuple(f"{key}={value}" for key, value in changed.items() if key not in told)


def _job(folder: Folder, data: str, changes: tuple[str, ...], job: Job) -> JobResult:
    stages = []
    for outline in job.stages:
        lines = list(Journal(folder.stage(outline["place"]) / "journal.jsonl").read())
        labels = next((line for line in lines if line["kind"] == "labels"), None)
        outcome = next((line for line in lines if line["kind"] == "round"), None)
        stages.append(StageResult(outline["name"], outline["round"], outline["place"], labels, outcome))
    return JobResult(data, job.method, job.seed, tuple(stages), tuple(job.results), changes)


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def preference(stage: StageResult, copy: str) -> float:
    """How much the validation images like a net.

    Pixels by mean IoU; images by fine-grained accuracy, since 200 of them leave many ties otherwise.
    """
    assert stage.outcome is not None
    scores = stage.outcome["scores"].get("validation", {}).get(copy, {})
    value = scores.get("mean_iou", scores.get("fine_grained"))
    return float("-inf") if value is None else float(value)  # without a single label there is nothing to like


def headline(score: dict[str, Any]) -> float | None:
    """The number a score is known by: mean IoU of pixels, accuracy of images; None if no site had truth."""
    value = score.get("mean_iou", score["accuracy"])
    return None if value is None else float(value)
