"""The sections on cost (steps, images, time, memory) and on how to repeat a study (versions, hardware, commands)."""

import math
import shlex
from collections.abc import Sequence

from dmt import run_files
from dmt.errors import DmtError
from dmt.methods import catalogue
from dmt.pages import html
from dmt.pages.html import Cell, Child, Safe, tag
from dmt.reporting import studies
from dmt.reporting.studies import Study
from dmt.results.job_results import JobResult
from dmt.results.stage_results import StageResult
from dmt.runs import progress
from dmt.training.journal import Journal


def table(study: Study) -> Safe:
    """Return a table of each method's cost, averaged over seeds: against the plan and, as in Tab. 8, the Oracle."""
    top = catalogue.ceiling()
    longest = _seconds(study.of(top.name))
    columns = ["method", "steps", "planned", "images", "time", "forecast", "peak memory, MB", "waiting"]
    rows = [_row(study, method) for method in study.methods]
    if math.isfinite(longest):
        columns.append(f"× {top.title}'s time")
        for row, method in zip(rows, study.methods, strict=True):
            factor = _seconds(study.of(method)) / longest
            row.append(("–", math.nan) if math.isnan(factor) else (f"{factor:.1f} ×", factor))
    return html.table(columns, rows, caption="Per seed, on average; a stage that methods share counts in each.")


NOTE = (
    "Planned and forecast: the plan's steps, and their time at the speed that the first net reached, counting every "
    "pass over an image the same. Waiting: the share of the time in which steps waited for their images."
)


def _row(study: Study, method: str) -> list[Cell]:
    jobs = study.of(method)
    steps = _cost(jobs, "steps")
    planned, foreseen = _forecast(study, method)
    stages = [stage for job in jobs for stage in (*job.before, *job.stages)]
    lines = [line for stage in stages for line in stage.journal("interval")]
    memory = max((line["peak_memory_mb"] for line in lines if line.get("peak_memory_mb")), default=math.nan)
    time = sum(line["seconds"] for line in lines if line.get("waiting") is not None)
    waited = sum(line["seconds"] * line["waiting"] for line in lines if line.get("waiting") is not None)
    return [
        studies.title(method),
        _count(steps),
        _count(planned),
        _count(_cost(jobs, "images")),
        _duration(_seconds(jobs)),
        _duration(foreseen),
        _count(memory),
        (f"{waited / time:.1%}", waited / time) if time else ("–", math.nan),
    ]


def _count(value: float) -> Cell:
    return ("–", math.nan) if math.isnan(value) else round(value)


def _duration(seconds: float) -> Cell:
    return ("–", math.nan) if math.isnan(seconds) else (progress.duration(seconds), seconds)


def _cost(jobs: Sequence[JobResult], key: str) -> float:
    return studies.spread(sum(_of(stage, key) for stage in (*job.before, *job.stages)) for job in jobs).mean


def _of(stage: StageResult, key: str) -> float:
    value = None if stage.outcome is None else stage.outcome["cost"].get(key)
    return math.nan if value is None else float(value)


def _seconds(jobs: Sequence[JobResult]) -> float:
    return _cost(jobs, "seconds")


def _forecast(study: Study, method: str) -> tuple[float, float]:
    """Return the planned steps, and the seconds they take at the measured speed; NaN where unknown."""
    if study.config is None:
        return math.nan, math.nan
    try:
        stages = catalogue.plan(method, study.config.recipe).stages
    except DmtError:
        return math.nan, math.nan
    sizes = study.config.data.sizes
    passes = sum(stage.steps(sizes) * stage.cost().passes for stage in stages)
    speed = _speed(study, method)
    return float(sum(stage.steps(sizes) for stage in stages)), passes / speed if speed else math.nan


def _speed(study: Study, method: str) -> float:
    """Return how many images per second a method's first stage was trained on, averaged over jobs; 0 if unknown."""
    found = [
        stage.outcome["cost"]["images"] / stage.outcome["cost"]["seconds"]
        for job in study.of(method)
        for stage in job.stages[:1]
        if stage.outcome is not None and stage.outcome["cost"].get("seconds") and "images" in stage.outcome["cost"]
    ]
    return sum(found) / len(found) if found else 0.0


def origin(study: Study) -> Safe:
    """Return a study's options, versions and hardware, and the commands that repeat it."""
    parts: list[Child] = [_options(study)]
    for folder in study.folders:
        sessions = list(Journal(folder / run_files.SESSIONS).read())
        if not sessions:
            parts.append(html.paragraph(f"{folder.name} holds no record of its sessions."))
            continue
        commands = dict.fromkeys(shlex.join(map(str, session.get("command", ()))) for session in sessions)
        parts.append(html.paragraph("To repeat it:" if len(study.folders) == 1 else f"To repeat {folder.name}:"))
        parts.append(tag("pre", tag("code", "\n".join(commands))))
        parts.append(_environment(sessions))
    return html.join(parts)


def _options(study: Study) -> Safe:
    if not study.changes:
        return html.paragraph(f"All options are those of the preset {study.data}.")
    listed = [tag("code", change) for change in study.changes]
    spaced = [part for each in listed for part in (", ", each)][1:]
    return html.paragraph(f"Options that differ from the preset {study.data}: ", spaced, ".")


def _environment(sessions: Sequence[dict[str, object]]) -> Safe:
    """Return a table with one row per combination of versions and hardware, and the time of its last session."""
    rows = {}
    for session in sessions:
        hardware, git = session.get("hardware"), session.get("git")
        device = hardware.get("device", "?") if isinstance(hardware, dict) else "?"
        cores = hardware.get("cores", "?") if isinstance(hardware, dict) else "?"
        commit = "–" if not isinstance(git, dict) else str(git["commit"])[:10] + (", changed" if git["changed"] else "")
        versions = tuple(str(session.get(key, "?")) for key in ("dmt", "python", "torch", "numpy", "threads"))
        rows[(*versions, str(device), str(cores), commit)] = str(session.get("time", "?"))
    columns = ("dmt", "Python", "torch", "numpy", "threads", "device", "cores", "commit", "last session")
    caption = f"{len(sessions)} session{'s' if len(sessions) > 1 else ''}"
    return html.table(columns, [(*row, time) for row, time in rows.items()], sortable=False, caption=caption)


def progress_table(study: Study) -> Safe | None:
    """Return a table of the jobs that are not finished, or None if all are."""
    rows = []
    for job in study.jobs:
        if not job.finished:
            stage = next(stage for stage in job.stages if stage.outcome is None)
            done = sum(stage.outcome is not None for stage in job.stages)
            steps = [line["step"] for line in stage.journal("interval")]
            now = f"{stage.title}, step {steps[-1] if steps else 0:,} of {stage.outline.get('steps', 0):,}"
            rows.append((studies.title(job.method), job.seed, f"{done} of {len(job.stages)}", now))
    return html.table(("method", "seed", "stages done", "now"), rows) if rows else None
