"""The report as a single HTML file, which opens from disk and loads nothing from the network."""

import datetime
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from dmt import files, outputs, run_files
from dmt.errors import RunError
from dmt.outputs import Kind
from dmt.pages import html
from dmt.pages.document import document, section
from dmt.pages.html import Child, Safe, tag
from dmt.reporting import (
    class_section,
    cost_section,
    label_section,
    picture_section,
    score_section,
    studies,
    verdict_section,
)
from dmt.reporting.studies import Study
from dmt.results import guard
from dmt.results.report import Report
from dmt.runs.folder import Folder

SHOWN = 5
"""Number of findings that are shown at once; the others are folded."""

TITLE = "dmt report: "
KIND = Kind("a page of dmt report", f"<title>{TITLE}".encode())

EVERY = 5.0
"""Seconds between two checks for news of a run in training."""


def page(paths: Sequence[Path], refresh: int | None = None) -> str:
    """Return the report on some runs as HTML; with ``refresh``, a browser reloads it after so many seconds."""
    found = studies.studies(paths)
    names = ", ".join(dict.fromkeys(study.source for study in found)) or "nothing yet"
    now = datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M")
    parts: list[Child] = []
    if len(found) > 1:
        parts.append(section("Runs side by side", score_section.comparison(found), score_section.by_labels(found)))
    for number, study in enumerate(found, start=1):
        parts.append(_study(study, f"s{number}-", several=len(found) > 1))
    if not found:
        parts.append(html.paragraph("No method has started yet."))
    about = f"what came out of {names}; made {now}"
    return document(f"{TITLE}{names}", *parts, subtitle=about, refresh=refresh)


def _study(study: Study, prefix: str, several: bool) -> Safe:
    """Return everything about one study: its verdict, the findings, links to the sections, and the sections."""
    head: list[Child] = [tag("h2", study.name) if several else None, _verdict(study), _findings(study)]
    parts = [(name, title, made) for name, title, made in _sections(study) if made is not None]
    links = [tag("a", title, href=f"#{prefix}{name}") for name, title, _ in parts]
    return html.join(
        [*head, tag("nav", *links), *(section(title, made, id=f"{prefix}{name}") for name, title, made in parts)]
    )


def _sections(study: Study) -> list[tuple[str, str, Child]]:
    """Return (anchor, heading, content) of the sections, the most important first; None for no content."""
    main = next(iter(study.learners), None)
    parts: list[tuple[str, str, Child]] = [
        ("now", "Still training", cost_section.progress_table(study)),
        ("scores", "Scores", scores(study)),
    ]
    if main is not None:
        if study.pixels:
            parts.append(("pictures", "Pictures", picture_section.sections(study, main)))
        parts.append(("labels", f"Pseudo labels of {studies.title(main)}", _labels(study, main)))
        if not study.unmeasured:
            parts.append(("classes", "Class by class", _classes(study, main)))
    elif study.baseline is not None and study.of(study.baseline) and not study.unmeasured:
        only = study.baseline
        parts.append(("classes", "Class by class", html.figures(
            class_section.confusion(study, only), class_section.calibration(study, [only]))))  # fmt: skip
    parts.append(("cost", "Cost", [cost_section.table(study), html.paragraph(cost_section.NOTE, class_="note")]))
    parts.append(("origin", "How to repeat it", cost_section.origin(study)))
    return parts


def scores(study: Study) -> Safe:
    """Return the tables of scores and, if a method learns from unlabeled images, the chart of scores per round."""
    if study.unmeasured:
        return html.paragraph(f"There are no scores: {guard.UNMEASURED}.", class_="note")
    table = score_section.table(study)
    first = html.beside(score_section.by_round(study), table) if study.learners else table
    return html.join([first, score_section.between(study)])


def _verdict(study: Study) -> Safe:
    said = [verdict_section.sentence(study), verdict_section.best(study), *verdict_section.doubts(study)]
    lines = [tag("p", sentence) for sentence in said if sentence is not None]
    return tag("div", *lines, class_="verdict")


def _findings(study: Study) -> Safe | None:
    """Return the findings of the guard, or None."""
    found = verdict_section.findings(study)
    if not found:
        return None
    lines = [
        tag("div", tag("b", where), f": {finding.text}. ", tag("span", f"Try {finding.remedy}.", class_="note"),
            class_="finding")
        for where, finding in found
    ]  # fmt: skip
    if len(lines) > SHOWN:
        lines = [*lines[:SHOWN], html.details(f"{len(lines) - SHOWN} more", *lines[SHOWN:])]
    return html.join([tag("h3", "What the guard says"), *lines])


def _labels(study: Study, main: str) -> list[Child]:
    """Return the figures about pseudo labels: those of the main method visible, those of the others folded."""
    why = label_section.known(study, main)
    parts: list[Child] = [html.paragraph(why, class_="note") if why else None, label_section.figures(study, main)]
    for method in study.learners[1:]:
        if any(stage.labels for job in study.of(method, finished=False) for stage in job.stages):
            name = f"Pseudo labels of {studies.title(method)}"
            parts.append(html.details(name, label_section.figures(study, method)))
    return parts


def _classes(study: Study, main: str) -> list[Child]:
    both = [method for method in (study.baseline, main) if method is not None and study.of(method)]
    return [
        html.figures(class_section.confusion(study, main), class_section.calibration(study, both)),
        html.paragraph(class_section.caveat(study, main), class_="note"),
        class_section.table(study, main),
    ]


def write(paths: Sequence[Path], out: Path, refresh: int | None = None, *, force: bool = False) -> int:
    """Write the report, over an earlier one or, with ``force``, over any file, and return its size in bytes."""
    if out.is_dir():
        raise RunError(f"{out} is a folder; give --out a file, for example {out / 'report.html'}")
    outputs.require_file(out, KIND, force=force)
    content = page(paths, refresh).encode(errors="replace")  # a folder's name may contain bytes that are not UTF-8
    files.write(out, content)
    return len(content)


def watch(
    paths: Sequence[Path], out: Path, notify: Callable[[str], None], every: float = EVERY, *, force: bool = False
) -> None:
    """Rewrite the report whenever the runs have changed, until all of their jobs are finished, or until Ctrl-C.

    It also ends if no process trains any of the runs, since a run that was killed does not change any more.
    The caller should then write the report once more: the page written here keeps reloading itself.
    """
    seen: object = None
    trained = True
    while not finished(paths):
        if not (trained or _trained(paths)):  # nor at the last check: two commands may leave a gap
            where = ", ".join(str(path) for path in paths)
            notify(
                f"no process is training {where} any more, and it is not finished; repeat the fit command to resume it"
            )
            return
        trained, news = _trained(paths), _state(paths)
        if news != seen:
            write(paths, out, refresh=max(1, round(every)), force=force)
            if seen is None:
                notify(f"{out} follows the run; open it in a browser. Ctrl-C ends it")
            seen = news
        time.sleep(every)


def _trained(paths: Sequence[Path]) -> bool:
    """Return whether a process is working on one of the runs."""
    return any(Folder(path).in_use for path in paths)


def _state(paths: Sequence[Path]) -> list[tuple[str, int, float]]:
    """Return name, size and time of the files that change as a run proceeds: its manifest and its journals."""
    journals = f"{run_files.STAGES}/*/{run_files.JOURNAL}"
    found = [file for path in paths for file in (path / run_files.MANIFEST, *path.glob(journals))]
    stats = [(str(file), file.stat()) for file in sorted(found)]
    return [(name, stat.st_size, stat.st_mtime) for name, stat in stats]


def finished(paths: Sequence[Path]) -> bool:
    """Return whether nothing is left to train in any of the runs."""
    jobs = Report.read(paths).jobs
    return bool(jobs) and all(job.finished for job in jobs)
