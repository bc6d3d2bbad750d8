"""Is it helping? What is wrong with a run, said with the remedy to try; and a verdict against its Baseline."""

import math
import statistics
from collections.abc import Iterable, Sequence

import numpy as np

from dmt import guard_rules
from dmt.core import evidence
from dmt.core.evidence import Evidence, Interval
from dmt.guard_rules import WORSE, Finding
from dmt.methods.catalogue import METHODS
from dmt.results import JobResult, StageResult

__all__ = ["Finding", "difference", "findings", "gain", "of_stage", "verdict"]

WITHOUT = frozenset({"baseline", "oracle"})
"""Methods that are not compared with a Baseline: they learn from no pseudo label."""


def findings(job: JobResult, base: JobResult | None = None) -> list[Finding]:
    """Everything known about a job now, finished or not: what was said while it trained, and what came out."""
    found = [finding for stage in job.stages for finding in _said(job, stage)]
    change = None if base is None else gain(job, base)
    if change is not None and job.method not in WITHOUT and not change.low > 0:
        title = METHODS[job.method].title
        if change.high < 0:
            text = f"{title} is clearly worse than Baseline with the same labels: {guard_rules.points(change)}"
            found.append(Finding("no gain", "", text, "a lower rate_round or a higher gamma, or use --method baseline"))
        else:
            text = f"{title} cannot be told from Baseline with the same labels: {guard_rules.points(change)}"
            found.append(
                Finding("no gain", "", text, "several --seeds, more images to measure on, more unlabeled images")
            )
    return found


def of_stage(job: JobResult, stage: StageResult) -> list[Finding]:
    """What the files of a stage and of those before it tell: of its labels at once, of its nets when it is finished."""
    nets = [] if stage.outcome is None else guard_rules.of_nets(job, stage)
    return [*guard_rules.of_labels(job, stage), *nets]


def _said(job: JobResult, stage: StageResult) -> list[Finding]:
    lines = stage.journal("guard")
    if not lines:  # not finished, or made before there was a guard
        return of_stage(job, stage)
    return [Finding(**finding) for finding in lines[-1]["findings"]]


def difference(job: JobResult, base: JobResult) -> float:
    """Points over the Baseline of the same seed: shipped net over shipped net or, with pairs, mean over mean."""
    if len(base.lines) == 1 and len(job.lines) == 1:
        return job.test_score("shipped") - base.test_score("shipped")
    common = [line for line in job.lines if line in base.lines]
    return job.test_score("raw", common) - base.test_score("raw", common)


def gain(job: JobResult, base: JobResult) -> Interval | None:
    """The same with a paired bootstrap interval over the images whose score counts; None without evidence."""
    nets = _nets(job, base)
    return None if nets is None else evidence.difference(*nets)


def _nets(job: JobResult, base: JobResult) -> tuple[list[Evidence], list[Evidence]] | None:
    """What the nets to be compared said of the same images: after, before."""
    if not (job.finished and base.finished):
        return None
    if len(base.lines) == 1 and len(job.lines) == 1:
        chosen = [[each.shipped()] for each in (job, base)]
    else:
        chosen = [[(stage, "raw") for stage in each.kept() if stage.line in base.lines] for each in (job, base)]
        chosen[1] = [(stage, copy) for stage, copy in chosen[1] if stage.line in job.lines]
    after, before = ([stage.evidence(stage.shown, copy) for stage, copy in nets] for nets in chosen)
    there = [each for each in (*after, *before) if each is not None]
    if len(there) < len(after) + len(before) or len({each.images for each in there}) != 1:
        return None
    if np.isnan(there[0].score()):  # no image has truth
        return None
    return there[: len(after)], there[len(after) :]


def verdict(jobs: Sequence[JobResult], bases: Sequence[JobResult]) -> str:
    """A sentence on one method over seeds: its gain over Baseline, its best round, the classes that got worse."""
    title = METHODS[jobs[0].method].title
    finished = [job for job in jobs if job.finished]
    if not finished:
        return f"{title} is not finished"
    before = {base.seed: base for base in bases if base.finished}
    pairs = [(job, before[job.seed]) for job in finished if job.seed in before]
    if not pairs:
        return f"{title} has no Baseline to be compared with; fit without --no-baseline adds it"
    if any(math.isnan(difference(*pair)) for pair in pairs):
        return f"{title} cannot be compared with Baseline: there is no truth to measure them by"
    parts = [f"{title} {_gained(pairs)}", *_best_round([job for job, _ in pairs]), *_worse_classes(pairs)]
    if pairs[0][0].shipped()[0].shown == "validation":
        parts.append("measured on the validation images, which also chose the net")
    return "; ".join(parts)


def _gained(pairs: Sequence[tuple[JobResult, JobResult]]) -> str:
    gains = [difference(*pair) for pair in pairs]
    nets = [found for found in (_nets(*pair) for pair in pairs) if found is not None]
    over, chance = "points over Baseline with the same labels", ""
    if len(nets) == len(pairs):
        change = evidence.interval(statistics.fmean(gains), _drawn(nets))
        chance = "" if change.clear else "; this cannot be told from chance"
    if len(pairs) > 1:
        return f"{statistics.fmean(gains):+.1f} ± {statistics.stdev(gains):.1f} {over} ({len(pairs)} seeds){chance}"
    if not nets:
        return f"{gains[0]:+.1f} {over}"
    split = pairs[0][0].shipped()[0].shown
    where = f"{nets[0][0][0].images:,} {split} images"
    return f"{gains[0]:+.1f} {over} ({change.low:+.1f} to {change.high:+.1f} in 90 % of draws of the {where}){chance}"


def _drawn(nets: Sequence[tuple[list[Evidence], list[Evidence]]]) -> np.ndarray:
    """(D,) the mean gain when images are drawn again and, of several seeds, these too."""
    each = np.stack([evidence.spread(after, before) for after, before in nets])  # (seeds, D)
    picked = np.random.default_rng(0).integers(0, len(each), each.shape)
    return np.take_along_axis(each, picked, 0).mean(0)  # type: ignore[no-any-return]


def _best_round(jobs: Sequence[JobResult]) -> Iterable[str]:
    """By validation, as --keep best would choose; in the mean over lines and seeds."""
    stages = [stage for job in jobs for stage in job.stages]
    split = "validation" if all(stage.score("validation", "raw") is not None for stage in stages) else "test"
    scores: dict[int, list[float]] = {}
    for stage in stages:
        score = stage.score(split, "raw")
        if score is not None:
            scores.setdefault(stage.round, []).append(score)
    if len(scores) > 1:
        best = max(scores, key=lambda number: statistics.fmean(scores[number]))
        yield f"round {best} was best" if best else "no round beat the first nets"


def _worse_classes(pairs: Sequence[tuple[JobResult, JobResult]]) -> Iterable[str]:
    """Classes that lost clearly. One chance in twenty that any is named wrongly, not that each is."""
    nets = [found for found in (_nets(*pair) for pair in pairs) if found is not None]
    if len(nets) < len(pairs):
        return

    def mean(sides: Sequence[list[Evidence]], whole: bool) -> np.ndarray:
        """(D, C) in the mean over nets and seeds."""
        each = [one.class_scores(_times(one, whole)) for side in sides for one in side]
        return np.mean(each, 0)  # type: ignore[no-any-return]

    change, drawn = (mean([a for a, _ in nets], whole) - mean([b for _, b in nets], whole) for whole in (True, False))
    there = ~np.isnan(drawn).any(0)  # a class of very few images may be missing from a draw
    if not there.any():
        return
    highest = np.full(len(there), np.inf)
    highest[there] = np.percentile(drawn[:, there], 100.0 - 5.0 / there.sum(), axis=0)
    worse = np.flatnonzero((highest < 0) & (change[0] <= -WORSE)).tolist()
    if worse:
        yield f"{guard_rules.names(pairs[0][0], worse)} got worse"


def _times(one: Evidence, whole: bool) -> np.ndarray:
    return np.ones((1, one.images)) if whole else evidence.draws(one.images)
