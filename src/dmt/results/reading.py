"""Results of every stage and method of a run, read from its files alone."""

import contextlib
import functools
import itertools
import logging
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from dmt import config as configuration
from dmt import files, presets, run_files
from dmt.config import Config
from dmt.core import early_end
from dmt.errors import ConfigError, RunError
from dmt.results import net_results
from dmt.results.net_results import BOTH, Net, NetResult
from dmt.results.stage_results import StageResult, liked, of_stage, preference
from dmt.runs import identity, starting
from dmt.runs.folder import Folder, Job, plain, warnings_of
from dmt.tasks import opening
from dmt.tasks.pool import Pool
from dmt.training.checkpoint import Checkpoint

FROM_FOLDER = frozenset({"classes", "palette", "labels", "unlabeled"})  # options that a user's folder determines


def configuration_of(folder: Folder) -> Config:
    """Return the configuration that a run was made with."""
    return _configuration(folder.manifest())


def _configuration(manifest: dict[str, Any]) -> Config:
    defaults = presets.get(manifest["data"]).config
    return configuration.override(defaults, configuration.recorded(defaults, manifest["config"]))


@dataclass(frozen=True)
class JobResult:
    """Results of one method with one seed.

    Attributes:
        data: the preset's name.
        method: the method's name.
        seed: the seed.
        stages: results of the stages, line by line, in training order.
        results: names of the last stage of each line or, if validation ended the rounds, of the best round's stages.
        changes: options that differ from the preset, as ``key=value``; results with different options are not mixed.
        origin: initial parameters of the nets and, for a user's folder, its images; different origins are not mixed.
        keep: whether the nets of the "last" round or of the "best" one by validation are used.
        classes: names of the classes.
        shares: whether each first net of a pair sees only some of the labels.
        warnings: errors in the images that make all scores doubtful; the user trained in spite of them.
        patience: number of rounds without improvement that end the job (``stop_rounds``); None if all are trained.
        skipped: stages after that end, which are not trained.
        folds: choices and expected results of cross-validation on a user's labels, as lines of text.
        helps: whether rounds help, by cross-validation on a user's labels; None if that was not tried.
        pool: how similar a user's unlabeled photos are to the labeled ones; None if that was not measured.
        before: stages that its nets started from, without classes and scores.
        shortened: how a budget shortened the training of first nets, in words; empty if it did not.
    """

    data: str
    method: str
    seed: int
    stages: tuple[StageResult, ...] = field(repr=False)
    results: tuple[str, ...]
    changes: tuple[str, ...] = ()
    origin: str = ""
    keep: str = "last"
    classes: tuple[str, ...] = ()
    shares: bool = False
    warnings: tuple[str, ...] = ()
    patience: int | None = None
    skipped: tuple[StageResult, ...] = field(default=(), repr=False)
    folds: tuple[str, ...] = ()
    helps: bool | None = None
    pool: Pool | None = None
    before: tuple[StageResult, ...] = field(default=(), repr=False)
    shortened: str = ""

    @property
    def finished(self) -> bool:
        return all(stage.outcome is not None for stage in self.stages)

    @property
    def rule(self) -> str:
        """Which round's nets are used, as in ``keep``; "last" if there is only one to choose from."""
        return self.keep if any(stage.round for stage in self.stages) else "last"

    @property
    def run(self) -> Path:
        """The folder of the run that holds the job."""
        return self.stages[0].path.parent.parent

    @property
    def doubted(self) -> bool:
        """Whether cross-validation on a user's labels predicted no gain from rounds, so that the Baseline is used."""
        return self.helps is False

    @property
    def last_place(self) -> str:
        """Folder name of the last planned stage; its identity covers everything that the job's plan depends on."""
        return (*self.stages, *self.skipped)[-1].place

    @property
    def ended(self) -> str | None:
        """Message that validation ended the rounds early; None if it did not."""
        if not self.skipped:
            return None
        (best,) = {stage.round for stage in self.stages if stage.name in self.results}
        done, planned = self.stages[-1].round, self.skipped[-1].round
        return f"rounds ended after {done} of {planned}, since none after round {best} did better on validation"

    def kept(self) -> list[StageResult]:
        """Return the stage of each finished line whose nets are used.

        It is the line's last one or, with keep=best, the best on validation; among equals, as without any validation,
        the last.
        """
        last = [stage for stage in self.stages if stage.name in self.results and stage.outcome is not None]
        return [self.best(stage.line) for stage in last] if self.keep == "best" else last

    @property
    def kept_before_rounds(self) -> bool:
        """Whether rounds were trained, but the nets of the online stage before them are used."""
        kept = self.kept()
        rounds = any(stage.round and not stage.online for stage in self.stages)
        return rounds and bool(kept) and all(stage.online for stage in kept)

    def best(self, line: str) -> StageResult:
        """Return the stage of a line that is best on validation; among equals, the last.

        Accuracy or mean IoU comes first, and fine-grained accuracy only breaks ties: rounds are trained differently,
        and some are merely more confident.
        """

        def liked(stage: StageResult) -> tuple[float, float]:
            scores = [(stage.score("validation", copy), preference(stage, copy)) for copy in stage.copies]
            return max((-math.inf if score is None else score, fine) for score, fine in scores)

        return max((stage for stage in reversed(self.stages) if stage.line == line and stage.outcome), key=liked)

    def preferred(self, line: str | None = None) -> Net:
        """Return the best net on validation among the kept stages of all lines or of one; among equals, the raw one."""
        kept = [stage for stage in self.kept() if line in (None, stage.line)]
        if not kept:
            raise RunError(f"{self.method} with seed {self.seed} is not finished; repeat the fit command to finish it")
        candidates = [(stage, copy) for stage in kept for copy in stage.copies]
        return max(candidates, key=lambda each: preference(*each))

    def pair(self) -> tuple[Net, ...]:
        """Return the best net of each line on validation; empty if there is only one line."""
        lines = [stage.line for stage in self.kept()]
        return tuple(map(self.preferred, lines)) if len(lines) > 1 else ()

    @cached_property
    def both(self) -> NetResult | None:
        """Result of the ensemble of a pair; None if there is only one line, or if it was not measured yet."""
        pair = self.pair()
        return net_results.read_pair(pair) if pair else None

    def shipped(self) -> NetResult:
        """Return the final model: a pair's ensemble unless there is an `objection`, else the best net on validation."""
        alone = NetResult.of_one(*self.preferred())
        return alone if self.both is None or self.objection is not None else self.both

    def has_line(self, line: str) -> bool:
        """Whether there is such a line; "both" counts if there are two lines."""
        return line in self.lines or (line == BOTH and len(self.lines) > 1)

    def asked(self, line: str) -> NetResult:
        """Return the best net of a line, or for "both" the ensemble, without scores if it was not measured yet."""
        if not self.has_line(line):
            there = " and ".join(self.lines)
            raise ConfigError(f"{self.method} with seed {self.seed} has no --line {line}, only {there}")
        if line == BOTH:
            return self.both or NetResult(self.pair(), {})
        return NetResult.of_one(*self.preferred(line))

    @property
    def objection(self) -> str | None:
        """Reason why one net of a pair is used alone, in words; None if the ensemble is used.

        The net beats the ensemble on validation by more than a standard error.
        """
        if self.both is None or self.both.error is None:
            return None
        alone = NetResult.of_one(*self.preferred())
        single, mean = alone.score("validation"), self.both.score("validation")
        if single is None or mean is None or mean >= single - self.both.error:
            return None
        return (
            f"{alone.title} is used alone: on validation it reaches {single:.2f}, and both nets together {mean:.2f}, "
            f"less by more than a standard error ({self.both.error:.2f})"
        )

    @property
    def lines(self) -> tuple[str, ...]:
        """Lines of nets, ("A",) or ("A", "B")."""
        return tuple(stage.line for stage in self.stages if stage.name in self.results)

    def test_score(self, copy: str, lines: Sequence[str] = ("A", "B")) -> float:
        """Return the score on the test images or, if there are none, the validation images; NaN if not measured.

        Args:
            copy: "raw" or "ema" for single nets of the kept stages, "both" for the ensemble of a pair, "shipped" for
                the final model.
            lines: lines of single nets; the scores of two lines are averaged.
        """
        if copy == "shipped":
            shipped = self.shipped()
            return _number(shipped.score(shipped.shown))
        if copy == BOTH:
            return math.nan if self.both is None else _number(self.both.score(self.both.shown))
        kept = [stage for stage in self.kept() if stage.line in lines]
        return statistics.fmean(_number(stage.score(stage.shown, copy)) for stage in kept) if kept else math.nan


def judged(jobs: Iterable[JobResult]) -> str:
    """Return the images on which the audit judged the kept labels of the jobs, in words (see `StageResult.judged`)."""
    return " or ".join(dict.fromkeys(stage.judged for job in jobs for stage in job.stages if stage.judged))


def read(folder: Folder) -> list[JobResult]:
    """Read all jobs of a run, finished or not."""
    manifest = folder.manifest()
    files.require_no_links(folder.path)
    jobs = [of_job(folder, manifest, job) for job in folder.jobs()]
    for stage in dict.fromkeys(stage.path for job in jobs for stage in job.stages if stage.outcome is None):
        if Checkpoint(stage).done and not folder.in_use:
            _tell(stage)
    return jobs


@functools.cache
def _tell(stage: Path) -> None:
    """Warn about a trained stage without results, once per stage."""
    logging.getLogger(__name__).warning(
        "%s is trained, but its journal does not tell what came out; repeat the fit command to measure it", stage
    )


def of_job(folder: Folder, manifest: dict[str, Any], job: Job) -> JobResult:
    """Read one job of a run."""
    changes = _changes(manifest["data"], manifest["config"])
    starts = {line: start["digest"] for line, start in manifest.get("starts", starting.RANDOM).items()}
    preset = presets.PRESETS.get(manifest["data"])
    if preset is not None and preset.start != "random" and "random" in starts.values():
        changes = (*changes, "start=random")  # the preset starts from published parameters
    origin = f"{starts} {manifest['images'] if manifest['data'] in presets.OWN else ''}"
    every = [(outline, each) for outline in job.stages for each in of_stage(folder, outline)]
    stages = tuple(each for outline, each in every if not outline.get(identity.BEFORE))
    before = tuple(each for outline, each in every if outline.get(identity.BEFORE))
    _require_alike(stages)
    result = JobResult(manifest["data"], job.method, job.seed, stages, tuple(job.results), changes, origin)
    shares = manifest["config"].get("share") is not None
    warnings = warnings_of(manifest) or ()
    search = manifest.get("search", {})
    folds, helps = tuple(search.get("lines", ())), search.get("helps")
    pool = Pool(manifest["pool"]["unlike"], tuple(manifest["pool"]["images"])) if "pool" in manifest else None
    result = replace(result, keep=job.keep, classes=_classes(manifest), shares=shares, warnings=warnings)
    result = replace(
        result, folds=folds, helps=helps, pool=pool, before=before, shortened=manifest.get("shortened", "")
    )
    patience = manifest["config"].get("stop_rounds")
    return result if patience is None else _by_validation(replace(result, patience=patience), patience)


def _require_alike(stages: Sequence[StageResult]) -> None:
    """Refuse stages of one job that were measured on different splits or classes: one of their files is damaged."""
    first: set[tuple[str, int]] | None = None
    for stage in stages:
        if stage.outcome is not None:
            measured = {
                (split, len(score.get("per_class", ())))
                for split, copies in stage.outcome["scores"].items()
                for score in copies.values()
            }
            if first not in (None, measured):
                path = stage.path / run_files.JOURNAL
                raise RunError(
                    f"{path} is damaged: its stage was not measured as the others of its job; "
                    f"restore it from a copy, or delete {stage.path} and repeat the fit command"
                )
            first = measured


def _by_validation(job: JobResult, patience: int) -> JobResult:
    """Apply early stopping: if validation has ended a job's rounds, its result is the best of them."""
    numbers = sorted({stage.round for stage in job.stages if stage.round and not stage.online})
    rounds = [[stage for stage in job.stages if stage.round == number] for number in numbers]
    done = list(itertools.takewhile(lambda each: all(stage.outcome is not None for stage in each), rounds))
    scores = [statistics.fmean(map(liked, each)) for each in done]
    count = early_end.end(scores, patience) or len(rounds)
    if not rounds or count > len(done):
        return job
    results = tuple(dict.fromkeys(stage.name for stage in rounds[early_end.best(scores[:count])]))
    skipped = tuple(stage for stage in job.stages if stage.round > numbers[count - 1])
    return replace(job, stages=job.stages[: len(job.stages) - len(skipped)], skipped=skipped, results=results)


def _changes(data: str, options: dict[str, Any]) -> tuple[str, ...]:
    """Return the options that differ from the preset, or all options if this release does not know the preset."""
    known, written = {}, configuration.renamed(options)
    if data in presets.PRESETS:
        preset = presets.PRESETS[data].config
        known = plain(configuration.flat(preset))
        with contextlib.suppress(ConfigError):  # if one of its options no longer exists, the recorded ones are compared
            written = plain(configuration.recorded(preset, options))
    told = FROM_FOLDER if data in presets.OWN else frozenset()
    changed = {key: value for key, value in written.items() if key not in known or known[key] != value}
    return tuple(f"{key}={value}" for key, value in changed.items() if key not in told)


def _classes(manifest: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the classes; empty if this release does not know the data or its options."""
    try:
        options = _configuration(manifest).data
    except ConfigError:
        return ()
    return opening.classes(options)


def _number(value: float | None) -> float:
    return math.nan if value is None else value
