"""The section on classes: scores that rose and fell, the confusion matrix, and calibration."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dmt.pages import charts, html
from dmt.pages.charts import Heat, Series
from dmt.pages.html import Child, Safe, tag
from dmt.reporting import studies
from dmt.reporting.studies import Study
from dmt.results import guard, guard_rules

MANY = 30
"""Number of classes above which the confusion matrix is replaced by a table of its worst cells."""


@dataclass(frozen=True)
class Change:
    """The score of one class, in percent, for the Baseline and for a method.

    Attributes:
        label: number of the class.
        before: recall, or IoU for segmentation, of the Baseline.
        after: the same of the method.
        clear: whether the change is more than chance; None if the predictions for every image were not kept.
    """

    label: int
    before: float
    after: float
    clear: bool | None

    @property
    def gain(self) -> float:
        return self.after - self.before


def changes(study: Study, method: str) -> list[Change]:
    """Return the change of every class that occurs, averaged over seeds."""
    pairs = [(job, base) for job in study.of(method) if (base := study.base(job)) is not None and base.finished]
    if not pairs:
        return []
    found = [guard.sides(*pair) for pair in pairs]
    after, before = (np.mean([studies.per_class(sides[side]) for sides in found], axis=0) for side in (0, 1))
    known = guard.class_changes(pairs)
    there = [label for label in range(len(after)) if np.isfinite(after[label]) and np.isfinite(before[label])]
    return [
        Change(label, float(before[label]), float(after[label]), None if known is None else bool(known[1][label]))
        for label in there
    ]


def table(study: Study, method: str) -> Safe:
    """Return a table that compares the Baseline with a method, class by class."""
    found = changes(study, method)
    if not found:
        return html.paragraph("There is nothing to compare the classes with yet.", class_="note")
    name, what = studies.title(method), "IoU" if study.pixels else "recall"
    rows = [
        (
            html.text(study.classes[change.label]),  # as text, even if the class is called "7"
            change.before,
            change.after,
            (f"{change.gain:+.2f}".replace("-", "−"), change.gain),
            _word(change),
        )
        for change in found
    ]
    columns = ("class", "Baseline, %", f"{name}, %", "change", "verdict")
    shown = len(columns) - (found[0].clear is None)
    return html.table(
        columns[:shown],
        [row[:shown] for row in rows],
        caption=f"{what} of each class on the {study.split} images, mean over seeds",
    )


def _word(change: Change) -> Child:
    if change.clear is None or abs(change.gain) < 0.005:
        return ""
    if not change.clear:
        return "within chance"
    if abs(change.gain) < guard_rules.WORSE:
        return "hardly changed"
    return tag("span", "better", class_="good") if change.gain > 0 else tag("span", "worse", class_="bad")


def caveat(study: Study, method: str) -> str:
    """Return a note on how to read the verdicts in the table."""
    found = changes(study, method)
    if found and found[0].clear is None:
        return (
            "Predictions for every image were not kept, or not for the same images: it is unknown which of these "
            "changes are due to chance."
        )
    return "Better and worse: nearly all draws of the same images agree on it. Within chance: they disagree."


def confusion(study: Study, method: str) -> Safe:
    """Return the confusion matrix of a method's final models, summed over seeds; for many classes, its worst cells."""
    matrix = _matrix(study, method)
    if matrix is None:
        return html.paragraph("No net is finished yet.", class_="note")
    name = studies.title(method)
    names = study.classes[: len(matrix)]
    if len(matrix) > MANY:
        return html.figure(f"What {name} confuses most", _pairs(matrix, names))
    drawn = charts.heat(f"confusion matrix of {name}", Heat(names, matrix.astype(int).tolist()))
    note = f"Each row is 100 % of a class of the {study.split} images, added over seeds; orange is wrong."
    return html.figure(f"What {name} mistakes for what", drawn, note=note)


def _matrix(study: Study, method: str) -> np.ndarray | None:
    found = []
    for job in study.of(method):
        shipped = job.shipped()
        if shipped.shown in shipped.scores:
            found.append(np.array(shipped.scores[shipped.shown]["confusion"], dtype=np.float64))
    return np.sum(found, axis=0) if found else None


def _pairs(matrix: np.ndarray, names: Sequence[str]) -> Safe:
    """Return a table of the 20 most frequent confusions, as shares of the true class."""
    share = matrix / np.maximum(matrix.sum(1, keepdims=True), 1.0)
    np.fill_diagonal(share, 0.0)
    order = np.argsort(-share, axis=None)[:20]
    cells = [divmod(int(cell), len(matrix)) for cell in order if share.flat[cell] > 0]
    rows = [
        (
            html.text(names[row]),
            html.text(names[column]),
            int(matrix[row, column]),
            (f"{share[row, column]:.1%}", float(share[row, column])),
        )
        for row, column in cells
    ]
    return html.table(("truth", "said", "times", "of the class"), rows)


def calibration(study: Study, methods: Sequence[str]) -> Safe:
    """Return a reliability diagram, confidence against accuracy, of the final models of some methods."""
    series = [found for method in methods if (found := _reliability(study, method)) is not None]
    heading = "Is it as accurate as it is confident?"
    if not series:
        why = "These nets were trained before calibration was measured; train them again, or dmt score them, to know."
        return html.figure(heading, html.paragraph(why, class_="note"))
    note = "Above the dashed line a net is underconfident, below it overconfident. Larger dots are more " + (
        "pixels." if study.pixels else "images."
    )
    drawn = charts.reliability("accuracy against confidence", [line for line, _ in series])
    gaps = ", ".join(f"{line.name} {error:.1f}" for line, error in series)
    return html.figure(heading, drawn, note=[note, " Mean gap, points: ", gaps, "."])


def _reliability(study: Study, method: str) -> tuple[Series, float] | None:
    bins, errors = [], []
    for job in study.of(method):
        shipped = job.shipped()
        found = shipped.scores.get(shipped.shown, {})
        if "calibration" in found:
            bins.append([[float(number or 0.0) for number in row] for row in found["calibration"]])
            errors.append(found["calibration_error"])
    if not bins:
        return None
    rows = np.array(bins)  # (seeds, 10, 3): sites, mean confidence, accuracy
    counts = rows[..., 0].sum(0)
    used = counts > 0
    means = (rows[..., 1:] * rows[..., :1]).sum(0)[used] / counts[used, None]
    sizes = [2.0 + 6.0 * math.sqrt(count / counts.sum()) for count in counts[used]]
    points = [(float(sure), float(right)) for sure, right in means]
    line = Series(studies.title(method), points, color=studies.color(method), sizes=sizes)
    return line, float(np.mean([error for error in errors if error is not None] or [math.nan]))
