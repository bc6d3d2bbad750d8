"""The guard: findings about what is wrong with a run, each with a remedy, and the verdict against the Baseline."""

import functools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from dmt.core import evidence
from dmt.core.evidence import Evidence, Interval
from dmt.methods import catalogue
from dmt.results import cautions, guard_pools, guard_rules
from dmt.results.guard_rules import WORSE, Finding
from dmt.results.job_results import JobResult
from dmt.results.net_results import EvidenceKey, NetResult
from dmt.results.stage_results import StageResult
from dmt.training import evidence_files

__all__ = ["UNMEASURED", "Finding", "base", "class_changes", "difference", "findings", "gain", "mean_gain", "of_stage",
           "same_rule", "sides", "single_difference", "verdict"]  # fmt: skip

UNMEASURED = "there are no test or validation labels; put 50 labeled images or more into test/"
"""Why there are no scores, and what to do about it."""

Pair = tuple[JobResult, JobResult]
"""A job and its reference."""

Keys = tuple[EvidenceKey, ...]
"""Location of the evidence of some nets."""


def base(job: JobResult, among: Iterable[JobResult]) -> JobResult | None:
    """Return the reference of a job: its seed's Baseline, or its round 0 if no Baseline was trained separately.

    Args:
        job: the job.
        among: jobs that differ from it only in method and seed.

    Returns:
        None if its seed's Baseline is missing or unfinished, or if there is nothing to compare with.
    """
    baselines = [each for each in among if catalogue.get(each.method).baseline]
    if baselines:
        return next((each for each in baselines if each.seed == job.seed and each.finished), None)
    first = tuple(stage for stage in job.stages if stage.round == 0)
    # with share=…, each first net of a pair sees fewer labels than a Baseline does
    if (job.shares and len(job.lines) > 1) or not first or len(first) == len(job.stages):
        return None
    return replace(job, method=catalogue.baseline().name, stages=first, results=tuple(stage.name for stage in first))


def findings(job: JobResult, base: JobResult | None = None) -> list[Finding]:
    """Return all findings about a job, finished or not: those made in training and, with a reference, on its gain."""
    found = [*guard_pools.of_pool(job), *(finding for stage in job.stages for finding in _said(job, stage))]
    if base is not None and catalogue.get(job.method).compared:
        found += _no_gain(job, base)
    return found


def _no_gain(job: JobResult, base: JobResult) -> Iterable[Finding]:
    title = catalogue.get(job.method).title
    gentler = f"{_gentler(job)}, or use --method {catalogue.baseline().name}"
    if _kept_first(job, base):
        text = f"{title} kept its first nets, which are the Baseline's: no round did better on validation"
        yield Finding("no gain", "", text, gentler)
        return
    if job.doubted:
        text = "cross-validation on the labels predicts no gain from rounds, so the Baseline is used"
        yield Finding("no gain", "", text, f"more labels, or --method {job.method} to use {title} regardless")
    change = gain(job, base)
    if change is None or change.low > 0:
        return
    if change.high < 0:
        text = f"{title} is clearly worse than Baseline with the same labels: {guard_rules.points(change)}"
        yield Finding("no gain", "", text, gentler)
    else:
        text = f"{title} is indistinguishable from Baseline with the same labels: {guard_rules.points(change)}"
        more = ", more unlabeled images" if catalogue.get(job.method).semi_supervised else ""
        yield Finding("no gain", "", text, f"several --seeds, more images to evaluate on{more}")


def _gentler(job: JobResult) -> str:
    """Return a remedy by which pseudo labels do less harm; only methods that weight them have a gamma."""
    rate = f"a lower {guard_rules.option(job, job.stages[-1], 'rate')}"
    return f"{rate} or a higher gamma" if any(map(guard_rules.weighs, job.stages)) else rate


def _kept_first(job: JobResult, base: JobResult) -> bool:
    """Whether --keep best chose the nets of the reference itself, so that the gain is 0 by construction."""
    kept = {stage.place for stage in job.kept()}
    return job.keep == "best" and job.finished and kept <= {stage.place for stage in base.stages}


def of_stage(job: JobResult, stage: StageResult) -> list[Finding]:
    """Return the findings about a stage: on its pseudo labels once they exist, on its nets once it is finished."""
    nets = [] if stage.outcome is None else guard_rules.of_nets(job, stage)
    labels = list(guard_rules.of_labels(job, stage)) or list(guard_pools.of_shares(job, stage))
    return [*labels, *nets]


def _said(job: JobResult, stage: StageResult) -> list[Finding]:
    lines = stage.journal("guard")
    if not lines:  # not finished, or made by a release without the guard
        return of_stage(job, stage)
    found = (Finding(**finding) for finding in lines[-1]["findings"])
    return [finding for finding in found if finding.where == stage.title]  # lines trained together share a journal


def difference(job: JobResult, base: JobResult) -> float:
    """Return the points of a job's final model over that of the Baseline, or of another method, with the same seed.

    If only one of two methods has two nets, and not the Baseline, or if two were not measured as an ensemble, single
    nets are compared instead: an ensemble would make the gain over a single net look too large.
    """
    if same_rule(job, base):
        return job.test_score("shipped") - base.test_score("shipped")
    return single_difference(job, base)


def single_difference(job: JobResult, base: JobResult) -> float:
    """Return the points of single raw nets over those of the Baseline, as the mean over the lines that both have."""
    common = [line for line in job.lines if line in base.lines]
    return job.test_score("raw", common) - base.test_score("raw", common)


def same_rule(job: JobResult, base: JobResult) -> bool:
    """Whether final models are comparable: only the Baseline may have more nets, and ensembles have been measured."""
    if any(len(each.lines) > 1 and each.both is None for each in (job, base)):
        return False
    fewer, more = sorted((job, base), key=lambda each: len(each.lines))
    return len(fewer.lines) == len(more.lines) or catalogue.get(more.method).baseline


def gain(job: JobResult, base: JobResult) -> Interval | None:
    """Return the gain with a paired bootstrap interval over the scored images; None without evidence.

    The nets are those of `difference`.
    """
    return None if _nets(job, base) is None else evidence.interval(difference(job, base), _spread(job, base))


def sides(job: JobResult, base: JobResult) -> tuple[list[NetResult], list[NetResult]]:
    """Return the nets to be compared of two finished jobs: those of the job, those of its reference."""
    if same_rule(job, base):
        return [job.shipped()], [base.shipped()]
    common = set(job.lines) & set(base.lines)
    after, before = (
        [NetResult.of_one(stage, "raw") for stage in each.kept() if stage.line in common] for each in (job, base)
    )
    return after, before


def _chosen(job: JobResult, base: JobResult) -> tuple[Keys, Keys] | None:
    """Return the locations of the evidence of both `sides`; None if a job is not finished."""
    if not (job.finished and base.finished):
        return None
    after, before = (tuple(net.evidence_key(net.shown) for net in nets) for nets in sides(job, base))
    return after, before


def _nets(job: JobResult, base: JobResult) -> tuple[list[Evidence], list[Evidence]] | None:
    """Return the evidence of both `sides`; None unless all nets have evidence on the same images."""
    chosen = _chosen(job, base)
    return None if chosen is None else _read(*chosen)


def _read(after: Keys, before: Keys) -> tuple[list[Evidence], list[Evidence]] | None:
    there = [found for key in (*after, *before) if (found := evidence_files.read(*key)) is not None]
    if len(there) < len(after) + len(before) or len({each.images for each in there}) != 1:
        return None
    if np.isnan(there[0].score()):  # no image has ground truth
        return None
    return there[: len(after)], there[len(after) :]


def _spread(job: JobResult, base: JobResult) -> np.ndarray:
    """Return the `difference` on every bootstrap draw of the images, (DRAWS,), given the evidence of both `sides`."""
    chosen = _chosen(job, base)
    assert chosen is not None
    after, before = (np.mean([_drawn(key) for key in keys], 0) for keys in chosen)
    return np.asarray(after - before)


@functools.lru_cache(maxsize=1024)
def _drawn(key: EvidenceKey) -> np.ndarray:
    """Return the score of a net on every draw, cached since several nets are compared with the same one."""
    found = evidence_files.read(*key)
    assert found is not None
    return evidence.spread([found], [])


def verdict(jobs: Sequence[JobResult], bases: Sequence[JobResult]) -> str:
    """Return the verdict on one method over seeds: gain over the Baseline, best round, classes that got worse.

    It ends with a warning if there are errors in the images, which make it meaningless; the report lists them.
    """
    doubt = "; do not trust it: there are errors in the images" if any(job.warnings for job in jobs) else ""
    return _verdict(jobs, bases) + doubt


def _verdict(jobs: Sequence[JobResult], bases: Sequence[JobResult]) -> str:
    title = catalogue.get(jobs[0].method).title
    finished = [job for job in jobs if job.finished]
    if not finished:
        return f"{title} is not finished"
    before = {base.seed: base for base in bases if base.finished}
    pairs = [(job, before[job.seed]) for job in finished if job.seed in before]
    if not pairs:
        return f"{title} has no Baseline to compare with; repeat the fit without --no-baseline to add it"
    if any(math.isnan(difference(*pair)) for pair in pairs):
        return f"{title} cannot be compared with Baseline: {UNMEASURED}"
    first = sum(_kept_first(*pair) for pair in pairs)
    if first == len(pairs):
        return f"{title} kept its first nets, which are the Baseline's: no round did better on validation"
    parts = [
        f"{title} {_gained(pairs)}",
        *cautions.reached(pairs),
        *_alone(pairs),
        *_best_round([job for job, _ in pairs]),
        *_worse_classes(pairs),
    ]
    if first:
        parts.append(f"{first} of {len(pairs)} seeds kept their first nets, which are the Baseline's")
    online = sum(job.kept_before_rounds for job, _ in pairs)
    if online:
        who = f"{online} of {len(pairs)} seeds use the nets" if len(pairs) > 1 else "it uses the net"
        parts.append(f"{who} of the online stage before the rounds: no round did better on validation")
    if pairs[0][0].shipped().shown == "validation":
        parts.append("measured on the validation images, which also chose the net")
    parts += cautions.doubts(pairs)
    return "; ".join(parts)


def _gained(pairs: Sequence[Pair]) -> str:
    gains = [difference(*pair) for pair in pairs]
    nets = [found for found in (_nets(*pair) for pair in pairs) if found is not None]
    mean, seeds = statistics.fmean(gains), len(pairs)
    size = f"{abs(mean):.1f}" + (f" ± {statistics.stdev(gains):.1f}" if seeds > 1 else "")
    over = f"{size} points below" if round(mean, 1) < 0 else f"+{size} points over"
    text = f"{over} Baseline with the same labels" + (f" ({seeds} seeds)" if seeds > 1 else "")
    if len(nets) < seeds:
        return text
    change = _over_seeds(pairs)
    if seeds == 1:
        where = f"{nets[0][0][0].images:,} {pairs[0][0].shipped().shown} images"
        low, high = guard_rules.signed(change.low), guard_rules.signed(change.high)
        text += f" ({low} to {high}, 90 % interval over the {where})"
    return text if change.clear else f"{text}; this is indistinguishable from chance"


def mean_gain(pairs: Sequence[Pair]) -> Interval | None:
    """Return the mean `difference` of pairs, one for each seed, with its interval; None if evidence is missing."""
    return None if not pairs or any(_nets(*pair) is None for pair in pairs) else _over_seeds(pairs)


def _over_seeds(pairs: Sequence[Pair]) -> Interval:
    drawn = np.stack([_spread(*pair) for pair in pairs])
    return evidence.over_seeds([difference(*pair) for pair in pairs], drawn)


def _alone(pairs: Sequence[Pair]) -> Iterable[str]:
    """Yield the gain of single nets, if the verdict is about an ensemble."""
    if any(net.together for pair in pairs for side in sides(*pair) for net in side):
        mean = statistics.fmean(single_difference(*pair) for pair in pairs)
        yield f"single nets {guard_rules.signed(mean)}"


def _best_round(jobs: Sequence[JobResult]) -> Iterable[str]:
    """Yield the round that --keep best would choose, if there is a choice: the most frequent over seeds and lines."""
    stages = [stage for job in jobs for stage in job.stages]
    if len({stage.round for stage in stages}) < 2 or any(stage.score("validation", "raw") is None for stage in stages):
        return
    chosen = Counter(job.best(line).round for job in jobs for line in job.lines)
    best, times = max(chosen.items(), key=lambda each: (each[1], each[0]))
    if len(chosen) == 1:
        yield f"round {best} was best by validation" if best else "no round beat the first nets by validation"
    else:
        name = f"round {best} was" if best else "the first nets were"
        yield f"{name} best by validation in {times} of {chosen.total()} cases"


def class_changes(pairs: Sequence[Pair]) -> tuple[np.ndarray, np.ndarray] | None:
    """Return (C,) points gained by each class and (C,) whether that is clear; None unless all nets have evidence."""
    chosen = [found for pair in pairs if (found := _chosen(*pair)) is not None]
    if not chosen or len(chosen) < len(pairs):
        return None
    after, before = (tuple(net for sides in chosen for net in sides[side]) for side in (0, 1))
    return _class_changes(after, before)


@functools.lru_cache(maxsize=16)
def _class_changes(after: Keys, before: Keys) -> tuple[np.ndarray, np.ndarray] | None:
    """Compute `class_changes`, cached since verdict and table both need them; files of finished nets do not change."""
    nets = _read(after, before)
    return None if nets is None else evidence.class_changes(*nets)


def _worse_classes(pairs: Sequence[Pair]) -> Iterable[str]:
    """Yield the classes that got clearly worse by at least `WORSE` points."""
    found = class_changes(pairs)
    if found is None:
        return
    change, clear = found
    worse = np.flatnonzero(clear & (change <= -WORSE)).tolist()
    if worse:
        yield f"{guard_rules.names(pairs[0][0], worse)} got worse"
