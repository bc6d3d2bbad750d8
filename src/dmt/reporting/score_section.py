"""The section on scores: by round, by method, by run, and against the number of labels."""

import math
from collections.abc import Sequence
from dataclasses import replace

from dmt import presets
from dmt.methods import catalogue
from dmt.pages import axes, charts, html
from dmt.pages.axes import Axes
from dmt.pages.charts import Level, Series
from dmt.pages.html import Cell, Safe
from dmt.reporting import studies, verdict_section
from dmt.reporting.studies import Study
from dmt.results import comparisons, guard, report_tables
from dmt.results.comparisons import Comparison

APART = 0.05
"""Points by which a final model must differ from the end of its line to be drawn as a ring."""

RING = 5.5
"""Radius of that ring."""

FEW = 2
"""Number of options that are shown in a row of the comparison of runs; more are folded."""


def table(study: Study) -> Safe:
    """Return a table with one row per method; its first columns are those that fit on a narrow screen."""
    several = _several(study)
    columns = ["method", f"{study.measure}, %", "gain", "seeds"]
    columns += ["single, %", "both, %", "gain, single"] if several else []
    told = [_told(study, method) for method in study.methods]
    shown = any(told)
    rows = [
        _row(study, method) + ([_paper(each)] if shown else [])
        for method, each in zip(study.methods, told, strict=True)
    ]
    caption = f"On the {study.split} images, mean ± standard deviation over seeds; gain: over Baseline, same seeds."
    if any(each is not None and each.endswith(presets.MARK) for each in told):
        caption += f" {presets.MARK} Published with another net, start, split or schedule: see docs/methods."
    if several:
        caption += (
            f" Single: mean score of the raw nets of a pair. Both: the mean of their probabilities. The columns "
            f"{study.measure} and gain are of the final model: both, unless one net is clearly better on validation."
        )
    return html.table([*columns, "paper, %"] if shown else columns, rows, caption=caption)


def _row(study: Study, method: str) -> list[Cell]:
    done, all_ = study.of(method), study.of(method, finished=False)
    seeds = f"{len(done)}" if len(done) == len(all_) else f"{len(done)} of {len(all_)}"
    found = studies.spread(studies.score(job) for job in done)
    plus = verdict_section.gain(study, method).signed_cell
    row: list[Cell] = [studies.title(method), found.cell, plus, (seeds, len(done))]
    if not _several(study):
        return row
    single, both = (studies.spread(job.test_score(copy) for job in done) for copy in ("raw", "both"))
    alone = verdict_section.gain(study, method, guard.single_difference).signed_cell
    return [*row, single.cell, both.cell, alone]


def _several(study: Study) -> bool:
    """Return whether the study contains pairs of nets."""
    return any(len(job.lines) > 1 for job in study.jobs)


def between(study: Study) -> Safe | None:
    """Return a table that compares the best method with each of the others; None unless there are two or more."""
    found = comparisons.of_best(study.jobs)
    if not found:
        return None
    several = any(each.single for each in found)
    columns = ["best", "over", "points", "90 % interval", "more than chance", "seeds", *(["nets"] if several else [])]
    rows = [_against(each) + ([("single" if each.single else "final")] if several else []) for each in found]
    notes = ["the best method over each of the others: mean difference of their final models over common seeds"]
    notes += [report_tables.MANY] if len(found) > 1 else []
    notes += [report_tables.SINGLE] if several else []
    caption = " ".join(f"{note[0].upper()}{note[1:]}." for note in notes)
    return html.table(columns, rows, caption=caption)


def _against(found: Comparison) -> list[Cell]:
    around = found.interval
    reach = "–" if around is None else f"{_signed(around.low)} to {_signed(around.high)}"
    points: Cell = (_signed(found.mean), found.mean)
    titles = [studies.title(method) for method in (found.method, found.other)]
    return [*titles, points, (reach, math.nan if around is None else around.low), found.told, len(found.points)]


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def published(study: Study) -> dict[str, float]:
    """Return the paper's scores by method; empty with changed options, since they would not be comparable."""
    return presets.PRESETS[study.data].paper if study.data in presets.PRESETS and not study.changes else {}


def _told(study: Study, method: str) -> str | None:
    """Return the published score of a method as text; None if there is none, or with changed options."""
    preset = presets.PRESETS.get(study.data) if not study.changes else None
    return None if preset is None else preset.published(method)


def _paper(told: str | None) -> Cell:
    return ("–", math.nan) if told is None else (told, float(told.rstrip(presets.MARK)))


def by_round(study: Study) -> Safe:
    """Return Fig. 9: the score per round, with its deviation over seeds; methods without rounds are dashed lines.

    Rounds are scored net by net. A ring marks a final model whose score is not that of the end of its line.
    """
    series, levels, rings = [], [], []
    several = _several(study)
    for method in study.methods:
        found = studies.spread(studies.score(job) for job in study.of(method))
        line, level = _line(study, method), _level(study, method)
        end = level if line is None else line.points[-1][1]
        ringed = bool(found.count) and end is not None and abs(found.mean - end) >= APART
        which = f"{', single' if several else ', last round'}" if ringed else ""
        name, color = studies.title(method), studies.color(method)
        if line is not None:
            series.append(replace(line, name=f"{name}{which} {end:.1f}"))
        elif level is not None:
            levels.append(Level(f"{name}{which} {level:.1f}", level, color))
        if ringed:
            rings.append((f"{name}, final {found.mean:.1f}", found, color))
    paper = published(study)
    shown = [method for method in study.learners if method in paper][:1]
    levels += [Level(f"paper's {studies.title(each)} {paper[each]:.1f}", paper[each], 4) for each in shown]
    if not series:
        return html.figure("Score per round", html.paragraph("No round is finished yet.", class_="note"))
    last = max(x for line in series for x, _ in line.points)
    series += [
        Series(name, [(last, final.mean)], [final.deviation], color, sizes=[RING], rings=True)
        for name, final, color in rings
    ]
    values = [y + around for line in series for (_, y), spread in _around(line) for around in (-spread, spread)]
    reach = axes.span([*values, *(level.value for level in levels)], 2.0, (0.0, 100.0))
    names = len(series) + len(levels)
    frame = Axes((0, max(last, 1)), reach, "round", f"{study.measure} on {study.split} images, %",
                 x_ticks=[(number, f"{number:g}") for number in range(int(last) + 1)],
                 height=max(320, 80 + 16 * names))  # fmt: skip
    drawn = charts.lines("score per round", frame, series, levels, " %")
    return html.figure("Score per round", drawn, note=_how_to_read(study, bool(rings)))


def _how_to_read(study: Study, rings: bool) -> str:
    """Return a note on what lines, rings and bands show."""
    line = (
        "the mean of what the two nets of a pair reach individually"
        if _several(study)
        else "the net that does best on validation, raw or EMA"
    )
    final = "Rings: the final models, whose scores and gains the verdict and the table tell. " if rings else ""
    return f"Lines: {line}. {final}Bands: ± standard deviation over seeds. Round 0 learns from labels alone."


def _around(line: Series) -> list[tuple[tuple[float, float], float]]:
    spreads = [0.0 if math.isnan(spread) else spread for spread in line.spread]
    return list(zip(line.points, spreads, strict=True))


def _line(study: Study, method: str) -> Series | None:
    jobs = study.of(method, finished=False)
    numbers = studies.rounds(jobs)
    if not any(numbers) and not any(stage.round for job in jobs for stage in job.stages):
        return None
    found = [studies.spread(studies.round_score(job, number) for job in jobs) for number in numbers]
    points = [(float(number), each.mean) for number, each in zip(numbers, found, strict=True)]
    if not points:
        return None
    spreads = [each.deviation for each in found]
    return Series(studies.title(method), points, spreads, studies.color(method))


def _level(study: Study, method: str) -> float | None:
    """Return the score of a method without rounds; for pairs that of single nets, as in the lines; None if unknown."""
    copy = "raw" if _several(study) else "shipped"
    found = studies.spread(job.test_score(copy) for job in study.of(method))
    return found.mean if found.count else None


def comparison(found: Sequence[Study]) -> Safe:
    """Return a table of all runs and methods."""
    rows: list[list[Cell]] = []
    for study in found:
        for method in study.methods:
            jobs = study.of(method)
            labels = next((study.labels(job) for job in study.of(method, finished=False)), None)
            score = studies.spread(studies.score(job) for job in jobs)
            plus = verdict_section.gain(study, method).signed_cell
            rows.append(
                [
                    html.text(study.name),
                    studies.title(method),
                    score.cell,
                    plus,
                    ("–", math.nan) if labels is None else labels,
                    len(jobs),
                    study.measure,
                    _options(study),
                ]
            )
    columns = ("run", "method", "score, %", "gain", "labels", "seeds", "measure", "options")
    return html.table(columns, rows, caption="Click a column's name to sort by it.")


def _options(study: Study) -> Cell:
    """Return the options that differ from the preset; if many, as for a user's own images, they are folded."""
    told = ", ".join(study.changes) or "as the preset"
    folded = html.details(f"{len(study.changes)} options", html.paragraph(told))
    return told if len(study.changes) <= FEW else (folded, told)


def by_labels(found: Sequence[Study]) -> Safe | None:
    """Return Fig. 7: score against number of labels; None unless runs on the same images differ in that number."""
    charts_ = [chart for kin in _kin(found) if (chart := _labels_chart(kin)) is not None]
    return html.figures(*charts_) if charts_ else None


def _kin(found: Sequence[Study]) -> list[list[Study]]:
    """Group studies that have the same images and options, except for the number of labels."""
    groups: dict[tuple[object, ...], list[Study]] = {}
    for study in found:
        name = study.data if study.config is None else str(getattr(study.config.data, "dataset", study.data))
        others = [change for change in study.changes if not change.startswith("labels=")]
        # the origin identifies a user's own images
        groups.setdefault((name, study.jobs[0].origin, study.jobs[0].classes, *others), []).append(study)
    return list(groups.values())


def _labels_chart(kin: Sequence[Study]) -> Safe | None:
    places: dict[str, dict[int, list[float]]] = {}
    for study in kin:
        for job in study.jobs:
            count = study.labels(job)
            if job.finished and count and not catalogue.get(job.method).ceiling:
                places.setdefault(job.method, {}).setdefault(count, []).append(studies.score(job))
    counts = sorted({count for found in places.values() for count in found})
    if len(counts) < 2:
        return None
    series = []
    for method, found in places.items():
        spreads = {count: studies.spread(values) for count, values in sorted(found.items())}
        points = [(math.log10(count), each.mean) for count, each in spreads.items()]
        around = [each.deviation for each in spreads.values()]
        series.append(Series(studies.title(method), points, around, studies.color(method)))
    top = catalogue.ceiling()
    reached = studies.spread(studies.score(job) for study in kin for job in study.of(top.name))
    levels = [Level(f"{top.title} {reached.mean:.1f}", reached.mean, top.color)] if reached.count else []
    values = [y + way for line in series for (_, y), spread in _around(line) for way in (-spread, spread)]
    values += [level.value for level in levels]
    ends = (math.log10(counts[0]), math.log10(counts[-1]))
    frame = Axes(ends, axes.span(values, 2.0, (0.0, 100.0)), "labels", f"{kin[0].measure}, %",
                 x_ticks=[(math.log10(count), axes.short(count)) for count in counts])  # fmt: skip
    drawn = charts.lines("score against number of labels", frame, series, levels, " %")
    return html.figure(f"Score against number of labels, {kin[0].data.split('-')[0]}", drawn,
                       note="mean ± standard deviation over seeds; labels on a logarithmic scale")  # fmt: skip
