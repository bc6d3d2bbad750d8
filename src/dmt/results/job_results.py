"""Results of one method with one seed, and which of its nets are used."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from dmt.errors import ConfigError, RunError
from dmt.results import net_results
from dmt.results.net_results import BOTH, Net, NetResult
from dmt.results.stage_results import StageResult, preference
from dmt.tasks.pool import Pool


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
        helps: whether rounds help, by cross-validation on a user's labels; None if that was not tried. False only in
            runs made while it was tried for masks.
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
    def chooses(self) -> bool:
        """Whether there are nets of several rounds, so that ``keep`` matters."""
        return len({stage.round for stage in self.stages}) > 1

    @property
    def rule(self) -> str:
        """Which round's nets are used, as in ``keep``; "last" if there is only one to choose from."""
        return self.keep if self.chooses else "last"

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


def by_rule(jobs: Sequence[JobResult]) -> dict[str, list[JobResult]]:
    """Divide jobs by the round whose nets they use, if methods with rounds differ in that; others belong to each."""
    chosen = [job for job in jobs if job.chooses]
    rules = dict.fromkeys(job.rule for job in chosen)
    if len(rules) < 2:
        return {"": list(jobs)}
    return {rule: [job for job in jobs if job not in chosen or job.rule == rule] for rule in rules}


def judged(jobs: Iterable[JobResult]) -> str:
    """Return the images on which the audit judged the kept labels of the jobs, in words (see `StageResult.judged`)."""
    return " or ".join(dict.fromkeys(stage.judged for job in jobs for stage in job.stages if stage.judged))


def _number(value: float | None) -> float:
    return math.nan if value is None else value
