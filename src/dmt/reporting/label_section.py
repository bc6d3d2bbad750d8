"""The section on pseudo labels: their error, plain and weighted, the classes they cover, and where nets disagree."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from dmt.pages import charts, html
from dmt.pages.axes import Axes
from dmt.pages.charts import Series
from dmt.pages.html import Safe
from dmt.reporting import studies
from dmt.reporting.studies import Spread, Study
from dmt.results import guard_rules, job_results
from dmt.results.job_results import JobResult
from dmt.results.stage_results import StageResult

TOPS = ("20%", "40%", "60%", "80%", "100%")
CASES = (
    ("negative", "teacher more confident than student: counts less", 2),
    ("positive", "student more confident: does not count", 7),
    ("agree", "agreement", 1),
)
BINS = 24
"""Parts into which the steps of a round are divided, so that rounds of any length can be drawn side by side."""

SHOWN = 30
"""Most classes in the coverage figure; if there are more, the least covered ones are shown."""


def figures(study: Study, method: str) -> Safe:
    """Return all figures about a method's pseudo labels, or a note that there are none yet."""
    jobs = study.of(method, finished=False)
    found = [_tops(study, method, jobs), _errors(method, jobs), _weights(jobs), _cases(jobs), _coverage(study, jobs)]
    shown = [each for each in found if each is not None]
    if not shown:
        return html.paragraph("No round with pseudo labels has begun yet.", class_="note")
    return html.figures(*shown)


def known(study: Study, method: str) -> str:
    """Return a note if the error of the labels cannot be shown because the ground truth is unknown, else ""."""
    stages = [stage for job in study.of(method) for stage in job.stages if stage.labels is not None]
    if stages and all(stage.audited("error_kept") is None for stage in stages):
        return "The truth of these unlabeled images is unknown, so the error of their labels cannot be shown."
    return ""


def _stages(jobs: Iterable[JobResult], number: int) -> list[StageResult]:
    return [stage for job in jobs for stage in job.stages if stage.round == number]


def _mean(jobs: Iterable[JobResult], number: int, of: Callable[[StageResult], float | None]) -> Spread:
    """Return mean and deviation over seeds of a number of one round; the nets of a pair are averaged first."""
    per_job = (studies.spread(map(of, _stages([job], number))) for job in jobs)
    return studies.spread(each.mean for each in per_job)


def _numbers(jobs: Sequence[JobResult]) -> list[int]:
    return sorted({stage.round for job in jobs for stage in job.stages if stage.labels is not None})


def _top(stage: StageResult, key: str, top: str) -> float | None:
    audit: dict[str, Any] | None = None if stage.outcome is None else stage.outcome["audit"]
    value = (audit or {}).get(key, {}).get(top)
    return None if value is None else float(value)


def _tops(study: Study, method: str, jobs: Sequence[JobResult]) -> Safe | None:
    """Return Fig. 1: the error, plain and weighted, of the most confident 20 to 100 % of the last round's labels."""
    for number in reversed(_numbers(jobs)):
        kinds = [("error_top", "as labeled", 0), ("error_top_weighted", "as weighted", 1)]
        series = []
        for key, name, color in kinds:
            found = [_mean(jobs, number, lambda stage, key=key, top=top: _top(stage, key, top)) for top in TOPS]  # type: ignore[misc]
            if any(each.count for each in found):
                series.append(Series(name, [(0.0, each.mean) for each in found], color=color))
        if series:
            break
    else:
        return None
    highest = max(y for each in series for _, y in each.points if math.isfinite(y))
    frame = Axes((0, 1), (0.0, max(highest * 1.1, 0.5)), "most confident labels", "wrong, %")
    drawn = charts.bars("error of pseudo labels by confidence", frame, [top.replace("%", " %") for top in TOPS],
                        series, " %")  # fmt: skip
    note = f"Labels of all unlabeled images in round {number}, most confident first"
    if len(series) > 1:
        note += "; as weighted: each with the weight that its student gives it at the end"
    elif not any(guard_rules.weighs(stage) for job in jobs for stage in job.stages):
        note += f". {studies.title(method)} weights all labels equally"
    return html.figure("Wrong pseudo labels, by confidence", html.legend((each.name, each.color) for each in series),
                       drawn, note=f"{note}.")  # fmt: skip


def _errors(method: str, jobs: Sequence[JobResult]) -> Safe | None:
    """Return a chart of the error of the kept labels, plain and weighted, round by round."""
    plain = _by_round("as kept", 0, jobs, lambda stage: stage.audited("error_kept"))
    weighted = _by_round("as weighted", 1, jobs, lambda stage: stage.audited("error_kept_weighted"))
    note = f"What is kept grows round by round, and with it what is wrong. {_judged(jobs)}"
    return _rounds_chart("Wrong among the labels it learned from", "wrong, %", [plain, weighted], note, " %")


def _judged(jobs: Sequence[JobResult]) -> str:
    """Return a sentence that names the images behind the error and weights of kept labels; empty if unknown."""
    judged = job_results.judged(jobs)
    return f"Of the kept labels of {judged}." if judged else ""


def _weights(jobs: Sequence[JobResult]) -> Safe | None:
    right = _by_round("right labels", 3, jobs, lambda stage: stage.audited("weight_right"))
    wrong = _by_round("wrong labels", 7, jobs, lambda stage: stage.audited("weight_wrong"))
    note = (
        "How much the finished student counts a kept label, 0 to 1. "
        f"The wider apart, the better the weights separate right from wrong. {_judged(jobs)}"
    )
    return _rounds_chart("Mean weight of right and wrong labels", "mean weight", [right, wrong], note, "")


def _by_round(name: str, color: int, jobs: Sequence[JobResult], of: Callable[[StageResult], float | None]) -> Series:
    numbers = _numbers(jobs)
    found = [_mean(jobs, number, of) for number in numbers]
    points = [(float(number), each.mean) for number, each in zip(numbers, found, strict=True)]
    return Series(name, points, [each.deviation for each in found], color)


def _rounds_chart(heading: str, unit: str, series: Sequence[Series], note: str, suffix: str) -> Safe | None:
    there = [line for line in series if any(math.isfinite(y) for _, y in line.points)]
    if not there:
        return None
    numbers = [x for x, _ in there[0].points]
    highest = max(y for line in there for _, y in line.points if math.isfinite(y))
    highest += max((around for line in there for around in line.spread if math.isfinite(around)), default=0.0)
    frame = Axes((numbers[0] - 0.15, max(numbers[-1], numbers[0] + 1) + 0.15), (0.0, highest * 1.1 or 1.0), "round",
                 unit, x_ticks=[(number, f"{number:g}") for number in numbers])  # fmt: skip
    return html.figure(heading, charts.lines(heading, frame, there, unit=suffix), note=note)


def _cases(jobs: Sequence[JobResult]) -> Safe | None:
    """Return a chart of how often each of the three cases of Eq. 6 occurs, over the steps of all rounds."""
    numbers = _numbers(jobs)
    rows = {number: _binned(_stages(jobs, number)) for number in numbers}
    there = [number for number in numbers if np.isfinite(rows[number]).any()]
    if not there:
        return None
    layers = []
    for column, (case, name, color) in enumerate(CASES):
        points = [
            (number - 0.5 + (part + 0.5) / BINS, 100.0 * float(rows[number][part, column]))
            for number in there
            for part in range(BINS)
            if np.isfinite(rows[number][part, column])
        ]
        layers.append(Series(name, points, color=color, faint=case == "agree"))
    apart = max(y + more for (_, y), (_, more) in zip(layers[0].points, layers[1].points, strict=True))
    top = min(100.0, max(10.0, 1.4 * apart))  # everything above is agreement
    frame = Axes((there[0] - 0.5, there[-1] + 0.5), (0, top), "round, its steps from left to right", "labels, %",
                 x_ticks=[(number, f"{number}") for number in there])  # fmt: skip
    drawn = charts.areas("the three cases of Eq. 6 over time", frame, layers)
    note = "The three cases of Eq. 6 among the labels of each step."
    if all(stage.outline.get("start") is None for job in jobs for stage in job.stages):
        note += " A fresh student knows nothing at first, and disagrees."
    names = [(name, color, case == "agree") for case, name, color in CASES]
    return html.figure("Where teacher and student disagree", html.legend(names),
                       drawn, note=note)  # fmt: skip


def _binned(stages: Iterable[StageResult]) -> np.ndarray:
    """Return the mean share of each case by progress within the round, (BINS, 3); NaN for bins without steps."""
    sums, counts = np.zeros((BINS, len(CASES))), np.zeros((BINS, 1))
    for stage in stages:
        lines = stage.journal("interval")
        found = [line for line in lines if all(line.get(case) is not None for case, _, _ in CASES)]
        last = max((line["step"] for line in found), default=1)
        for line in found:
            part = min(BINS - 1, int(BINS * (line["step"] - 1) / last))
            sums[part] += [line[case] for case, _, _ in CASES]
            counts[part] += 1
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _coverage(study: Study, jobs: Sequence[JobResult]) -> Safe | None:
    """Return a figure of the share of predicted labels that were kept, by class and round."""
    numbers = _numbers(jobs)
    columns = [_kept(_stages(jobs, number)) for number in numbers]
    there = [(number, column) for number, column in zip(numbers, columns, strict=True) if column is not None]
    if not there:
        return None
    shares = np.stack([column for _, column in there], axis=1)  # (C, rounds)
    order = np.arange(len(shares)) if len(shares) <= SHOWN else np.argsort(np.nan_to_num(shares).min(1))[:SHOWN]
    names = [study.classes[label] for label in order]
    drawn = charts.grid(
        "kept labels by class and round", names, [f"{number}" for number, _ in there], shares[order].tolist()
    )
    note = "Kept of the labels predicted for each class, %, by round. – is a class that was never predicted."
    if len(shares) > SHOWN:
        note += f" The {SHOWN} least kept of {len(shares)} classes."
    return html.figure("Coverage of the classes", drawn, note=note)


def _kept(stages: Iterable[StageResult]) -> np.ndarray | None:
    """Return the share of each class's labels that was kept, (C,), or None if no stage has labels.

    It is NaN for a class that was never predicted.
    """
    found = [stage.labels["coverage"] for stage in stages if stage.labels is not None]
    if not found:
        return None
    kept = np.sum([each["kept"] for each in found], axis=0, dtype=np.float64)
    predicted = np.sum([each["predicted"] for each in found], axis=0, dtype=np.float64)
    return np.where(predicted > 0, kept / np.maximum(predicted, 1), np.nan)
