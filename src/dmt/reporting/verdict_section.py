"""The verdict of a study in a sentence, reservations about it, and the findings of the guard."""

import math
from collections.abc import Callable

from dmt.reporting import studies
from dmt.reporting.studies import Spread, Study
from dmt.results import comparisons, guard, guard_rules, guard_summary
from dmt.results.guard import Finding
from dmt.results.job_results import JobResult


def sentence(study: Study) -> str:
    """Return the verdict on the main method or, if there is nothing to compare it with, the scores so far."""
    method = next((method for method in study.learners if study.of(method)), None)
    if method is not None:
        jobs = study.of(method)
        bases = [base for base in map(study.base, jobs) if base is not None]
        if bases:
            return f"{guard.verdict(jobs, bases)}."
    done = [method for method in study.methods if study.of(method)]
    if not done:
        return "Nothing is finished yet."
    return " ".join(f"{studies.title(each)} reaches {_reached(study, each)}." for each in done)


def best(study: Study) -> str | None:
    """Return a sentence on the method that gained the most; None if that is the one the verdict is about."""
    gains = {method: gain(study, method) for method in study.learners}
    known = {method: found for method, found in gains.items() if found.count}
    main = next((method for method in study.learners if study.of(method)), None)
    first = max(known, key=lambda method: known[method].mean, default=None)
    if first is None or main not in known or round(known[first].mean - known[main].mean, 1) <= 0:
        return None
    lead = "gained more" if len(known) == 2 else f"gained the most of {len(known)} methods"
    over = f"{studies.title(first)} {lead}: {_signed(known[first])} points over Baseline"
    pairs = comparisons.paired(study.of(first), study.of(main))
    if len(pairs) < max(known[first].count, known[main].count):
        return f"{over}, but with other seeds than {studies.title(main)}."
    apart = f"{known[first].mean - known[main].mean:.1f} points more than {studies.title(main)}"
    words = {None: "", True: ", which is more than chance", False: ", which is indistinguishable from chance"}
    return f"{over}, {apart}{words[comparisons.compare(pairs, len(known)).clear]}."


def _signed(found: Spread) -> str:
    around = "" if math.isnan(found.deviation) else f" ± {found.deviation:.1f}"
    return f"{guard_rules.signed(found.mean)}{around}"


def doubts(study: Study) -> list[str]:
    """Return sentences that qualify the verdict: errors in images, a single seed, unfinished jobs and the like."""
    errors = dict.fromkeys(each for job in study.jobs for each in job.warnings)
    trained = "Warning: the scores may be meaningless, since it was trained on images with errors"
    sentences = [f"{trained}: {error}" for error in errors]
    ended = [(studies.title(job.method), job) for job in study.jobs if job.ended is not None]
    sentences += [f"{title}, seed {job.seed}: {job.ended}." for title, job in ended]
    alone = [(studies.title(job.method), job) for job in study.jobs if job.finished and job.objection is not None]
    sentences += [f"{title}, seed {job.seed}: {job.objection}." for title, job in alone]
    sentences += dict.fromkeys(f"{line[0].upper()}{line[1:]}." for job in study.jobs for line in job.folds)
    seeds = {len(study.of(method)) for method in study.learners} - {0}
    if seeds == {1}:
        sentences.append("One seed only: another seed may differ by more than this range. Three seeds show how much.")
    if study.learners and study.baseline is None and any(map(study.base, study.jobs)):
        sentences.append("Baseline is round 0 of the same run, which learned from the labels alone.")
    if study.split == "validation" and not study.learners:
        sentences.append("There are no test images: the scores are those of the validation images.")
    waiting = [job for job in study.jobs if not job.finished]
    if waiting:
        sentences.append(f"{len(waiting)} of {len(study.jobs)} trainings are not finished; this is the result so far.")
    return sentences


def _reached(study: Study, method: str) -> str:
    found = studies.spread(studies.score(job) for job in study.of(method))
    seeds = "1 seed" if found.count == 1 else f"{found.count} seeds"
    return f"{found} % {study.measure} on the {study.split} images ({seeds})"


def gain(study: Study, method: str, by: Callable[[JobResult, JobResult], float] = guard.difference) -> Spread:
    """Return the points gained over the Baselines of the same seeds.

    Args:
        by: difference of a job and its Baseline in points; by default between their final models.
    """
    pairs = [(job, study.base(job)) for job in study.of(method)]
    found = [by(job, base) for job, base in pairs if base is not None and base is not job]
    return studies.spread(value for value in found if math.isfinite(value))


def findings(study: Study) -> list[tuple[str, Finding]]:
    """Return (where, finding) of all jobs; findings that several jobs have in common appear once."""
    return guard_summary.told(study.jobs)
