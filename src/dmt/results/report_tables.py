"""The tables of a text report: methods with their scores, and the stages of a method."""

import statistics
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from dmt import presets
from dmt.methods import catalogue
from dmt.results import guard, job_results, narrow_tables, tables
from dmt.results.comparisons import Comparison
from dmt.results.job_results import JobResult
from dmt.results.stage_results import StageResult

TITLE = "test accuracy of images, mean IoU of pixels, %: mean ± standard deviation over seeds"
OPTIONAL = (("raw", "ema", "EMA"), ("A", "B", "EMA"), ("single",), ("both",), ("paper",))
"""Groups of columns of the summary that are left out on a narrow terminal, the least important first."""

OPTIONAL_OF_STAGES = (("weight right", "weight wrong"), ("weighted",), ("EMA",), ("least kept class",))
"""The same for the table of a method's stages."""

OPTIONAL_OF_METHODS = (("nets",), ("seeds",))
"""The same for the table that compares methods with each other."""

MANY = "intervals are wide enough to hold for all pairs of these methods at once"
SINGLE = "single: net over net (raw), since not both methods have an ensemble of two nets"


@dataclass(frozen=True)
class Group:
    """A row of the summary.

    Attributes:
        name: name of the data, with a mark for changed options.
        jobs: jobs that differ only in the seed.
        bases: references of the jobs, as far as there are any.
    """

    name: str
    jobs: Sequence[JobResult]
    bases: Sequence[JobResult]

    @property
    def complete(self) -> list[JobResult]:
        return [job for job in self.jobs if job.finished]


def summary(groups: Sequence[Group], width: int | None = None) -> str:
    """Return a table with one row per data set, options and method, followed by an explanation of its columns."""
    pairs = any(len(job.lines) > 1 for group in groups for job in group.jobs)
    lines = ["A", "B"] if pairs else []
    copies = ["ema", "both", "shipped"] if pairs else ["raw", "ema", "shipped"]
    scored = [*lines, *({"ema": "EMA", "shipped": "final"}.get(copy, copy) for copy in copies)]
    gains = ["gain", "single"] if pairs else ["gain"]
    rows = []
    for group in groups:
        complete = group.complete
        seeds = f"{len(complete)}" if len(complete) == len(group.jobs) else f"{len(complete)} of {len(group.jobs)}"
        scores = [tables.spread([job.test_score("raw", line) for job in complete]) for line in lines]
        scores += [tables.spread([job.test_score(copy) for job in complete]) for copy in copies]
        gained = [_gain(complete, group.bases), *([_single_gain(complete, group.bases)] if pairs else [])]
        first = group.jobs[0]
        rows.append([group.name, catalogue.get(first.method).title, seeds, *scores, *gained, published(first)])
    table = tables.filled(TITLE, ["data", "method", "seeds", *scored, *gains, "paper"], rows)
    table = narrow_tables.fit(table, width, OPTIONAL)
    said = _explained(tables.heads(table), [job for group in groups for job in group.jobs])
    return tables.text(table, width) + narrow_tables.sentences(said, width)


def _explained(columns: Collection[str], jobs: Sequence[JobResult]) -> str:
    """Explain those columns of the summary that are shown."""
    if "final" not in columns and any(job.finished for job in jobs):
        return f"There are no scores: {guard.UNMEASURED}."
    gain = "gain: over the Baseline's final model with the same seeds"
    gain += ", for one seed with a 90 % bootstrap range over images"
    notes = [f"final: of the {_keeps(jobs)} nets, the best on validation"]
    nets = ", ".join(name for name in ("A", "B", "EMA") if name in columns)
    if "both" in columns:
        individually = f"{nets}: the {_keeps(jobs)} nets of a pair, individually; " if nets else ""
        notes = [
            f"{individually}both: the mean of their probabilities, "
            f"which is the final model unless one net is clearly better on validation"
        ]
    if "single" in columns:
        gain += "; single: the gain of one net over one net (also used as gain if the Baseline has a single net)"
    notes += [gain] if "gain" in columns else []
    note = ";\n".join(notes) + "."
    if any(stage.outcome is not None and stage.shown != "test" for job in jobs for stage in job.stages):
        note += "\nThere are no test images: scores are on the validation images, which also chose the final model."
    return note


def _keeps(jobs: Sequence[JobResult]) -> str:
    """Describe which round's nets are used."""
    ways = {"last": "last", "best": "best round's"}
    kept = (job.keep if job.patience is None else "best" for job in jobs)
    return " or ".join(dict.fromkeys(ways[each] for each in kept))


def published(job: JobResult) -> str:
    """Return the published score of a job's method; a dash if options were changed, which makes it incomparable."""
    preset = presets.PRESETS.get(job.data) if not job.changes else None
    return (preset and preset.published(job.method)) or "–"


def _gain(jobs: Sequence[JobResult], base: Sequence[JobResult]) -> str:
    """Format the gain over the Baseline of the same seed, as in `guard.difference`."""
    pairs = compared(jobs, base)
    if not pairs:
        return "–"
    gains = [guard.difference(*pair) for pair in pairs]
    interval = guard.gain(*pairs[0]) if len(pairs) == 1 else None  # over images; several seeds show their spread
    told = "" if interval is None else f" ({interval.low:+.2f} to {interval.high:+.2f})"
    return ("+" if statistics.fmean(gains) >= 0 else "") + tables.spread(gains) + told


def _single_gain(jobs: Sequence[JobResult], base: Sequence[JobResult]) -> str:
    """Format the gain of single nets over the Baseline, as the mean over lines."""
    gains = [guard.single_difference(*pair) for pair in compared(jobs, base)]
    return ("+" if statistics.fmean(gains) >= 0 else "") + tables.spread(gains) if gains else "–"


def compared(jobs: Sequence[JobResult], base: Sequence[JobResult]) -> list[tuple[JobResult, JobResult]]:
    """Pair jobs with the finished Baselines of their seeds; a Baseline itself is compared with nothing."""
    before = {job.seed: job for job in base if job.finished}
    if not jobs or catalogue.get(jobs[0].method).baseline:
        return []
    return [(job, before[job.seed]) for job in jobs if job.seed in before]


def between(found: Sequence[tuple[str, Sequence[Comparison]]], width: int | None = None, several: bool = False) -> str:
    """Return a table that compares the best method with each of the others.

    Args:
        found: name of the data, and the comparisons on them.
        width: width of the terminal.
        several: whether the report is of several data sets or options, which are then named.
    """
    rows = []
    for name, others in found:
        for each in others:
            titles = [catalogue.get(method).title for method in (each.method, each.other)]
            nets = "single" if each.single else tables.UNKNOWN
            data = name if several else tables.UNKNOWN
            rows.append([data, *titles, f"{len(each.points)}", nets, _points(each), each.told])
    title = "the best method over the others, mean points over common seeds (90 % interval)"
    columns = ("data", "best", "over", "seeds", "nets", "points", "more than chance")
    table = narrow_tables.fit(tables.filled(title, columns, rows), width, OPTIONAL_OF_METHODS)
    notes = [MANY] if any(len(others) > 1 for _, others in found) else []
    notes += [SINGLE] if any(each.single for _, others in found for each in others) else []
    return tables.text(table, width) + "".join(f"{narrow_tables.sentences(each, width)}\n" for each in notes)


def _points(found: Comparison) -> str:
    around = found.interval
    return f"{found.mean:+.2f}" + ("" if around is None else f" ({around.low:+.2f} to {around.high:+.2f})")


def rounds(title: str, jobs: Sequence[JobResult], width: int | None = None) -> str:
    """Return a table of score, coverage and pseudo-label error by stage, averaged over seeds."""
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
    judged = job_results.judged(jobs)
    table = tables.text(narrow_tables.fit(tables.filled(title, columns, rows), width, OPTIONAL_OF_STAGES), width)
    note = f"label error: % of the kept pseudo labels that are wrong, plain and weighted; weights: mean; on {judged}\n"
    return table + (narrow_tables.sentences(note, width) if judged else "")


def _kept(stage: StageResult) -> float | None:
    return None if stage.labels is None else stage.labels["kept"] / max(stage.labels["of"], 1)


def _least_kept(stage: StageResult) -> float | None:
    """Return the smallest kept share of any class's pseudo labels, which reveals a class that vanishes."""
    if stage.labels is None:
        return None
    coverage = stage.labels["coverage"]
    return min(
        kept / predicted if predicted else 0.0
        for kept, predicted in zip(coverage["kept"], coverage["predicted"], strict=True)
    )
