"""The rules of the guard: each examines one stage of a job and yields findings, each with a remedy.

With the thresholds below, healthy runs on digits yield no finding; on scenes, the rarest class may be reported, which
indeed gets no pseudo labels in some early rounds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np

from dmt import presets
from dmt.core import evidence
from dmt.data.folders.photo_files import shown
from dmt.methods import catalogue, online_stages
from dmt.methods.groups import MethodOptions
from dmt.methods.recipe import BY_ROUND
from dmt.results.job_results import JobResult
from dmt.results.stage_results import StageResult

WORSE = 1.0
"""Points that a round must lose to be reported: less is clear only on very many images, and matters little."""

FRESH_WORSE = 10.0
"""The same for a fresh net that sees only some of the pseudo labels: it often scores lower at first (by 8 points on
digits with a fifth of them), and later rounds catch up."""

VANISHED = 0.05
"""A class has vanished below this part of the pseudo labels due by its share of the labels; a fifth is healthy."""

ENOUGH = 5
"""Sites that must be expected, or wrong, before finding none is significant: by chance, 1 in 150 with 5 expected."""

CURRICULUM_ENDS = 0.8
"""Fraction from which on every class must be among the kept labels. Below, the hardest class may be missing."""

ALIKE = 0.1
"""Disagreements of student and teacher per error of the worse one below which they are alike; 0.25 to 1 is healthy."""

AGREE = 0.995
"""Without ground truth: share of pseudo labels that the student agrees with at the end from which on they are alike."""

COLLAPSED = 0.95
"""Share of sites predicted as one class above which a net may have collapsed to it."""

NEARLY_GONE = 0.1
"""It has, if the others also have less than this part of their share: 95 % of pixels may really be background."""

UNSURE = 6.0
"""Half width in points of a validation score's interval above which validation is too small: more than most rounds
gain, and more than the uncertainty of the paper's 200 images at worst."""

NAMED = 4
"""Maximum number of classes that are listed by name."""

FEW = 30
"""Validation images below which even a perfect score says little; then the guard reports only that they are too few."""


@dataclass(frozen=True)
class Finding:
    """Something wrong with a run.

    Attributes:
        kind: "worse", "vanished", "alike", "collapsed", "unsure", "skewed", "foreign" or "no gain".
        where: line and round of the net, e.g. "A3"; empty for a finding about the whole job.
        text: what is wrong.
        remedy: what to try.
        about: names of the classes concerned, if any.
    """

    kind: str
    where: str
    text: str
    remedy: str
    about: str = ""

    def __str__(self) -> str:
        return f"{self.text}; try {self.remedy}"


def of_labels(job: JobResult, stage: StageResult) -> Iterator[Finding]:
    """Yield findings about the pseudo labels that a stage learns from; known before it is trained."""
    if stage.labels is None:
        return
    due = shares_of_labels(job, stage)
    counts = np.array(stage.labels["coverage"]["predicted"], dtype=float)
    if due is None or len(due) != len(counts):
        return
    top = _collapse(counts, due)
    if top is not None:
        share = counts[top] / counts.sum()
        text = f"{share:.0%} of the pseudo labels are {names(job, [top])}, but only {due[top]:.0%} of the labels are"
        remedy = f"{_slower(job, stage)}, or {_balanced(stage)}more labels of the other classes"
        yield Finding("collapsed", stage.title, text, remedy, names(job, [top]))
        return
    earlier = _before(job, stage)
    known = _vanished(job, earlier, due) if earlier is not None and earlier.labels else set()
    gone = sorted(_vanished(job, stage, due) - known)
    if gone:
        yield _hardly_any(job, stage, gone, due)


def _hardly_any(job: JobResult, stage: StageResult, gone: list[int], due: np.ndarray) -> Finding:
    assert stage.labels is not None
    kept = sum(stage.labels["coverage"]["kept"][label] for label in gone)
    expected = due[gone].sum() * stage.labels["kept"]
    has, its = ("has", "its") if len(gone) == 1 else ("have", "their")
    text = (
        f"{names(job, gone)} {has} hardly any pseudo labels: {kept:,} {'is' if kept == 1 else 'are'} kept, but "
        f"{expected:,.0f} would match {its} share of the labels"
    )
    which = names(job, gone) if len(gone) <= NAMED else "these classes"
    about = ", ".join(names(job, [label]) for label in gone)
    return Finding("vanished", stage.title, text, f"{_balanced(stage)}more labels of {which}", about)


def of_nets(job: JobResult, stage: StageResult) -> Iterator[Finding]:
    """Yield findings about the net of a finished stage."""
    collapsed = list(_collapsed(job, stage))
    yield from collapsed
    yield from _worse(job, stage)
    if not collapsed:  # nets that predict a single class are alike, but that is not their main problem
        yield from _alike(job, stage)
    yield from _unsure(job, stage)


def _collapsed(job: JobResult, stage: StageResult) -> Iterator[Finding]:
    found = stage.evidence("validation", "raw")
    if stage.outcome is None or found is None or found.images < FEW:
        return
    confusion = found.matrix()
    truth = confusion.sum(1) / max(confusion.sum(), 1.0)
    top = _collapse(confusion.sum(0), truth)
    if top is not None:
        share = confusion.sum(0)[top] / confusion.sum()
        text = f"the net predicts {share:.0%} of validation as {names(job, [top])}, but only {truth[top]:.0%} is"
        yield Finding("collapsed", stage.title, text, _trained(job, stage), names(job, [top]))


def _worse(job: JobResult, stage: StageResult) -> Iterator[Finding]:
    earlier = _before(job, stage)
    if earlier is None:
        return
    after, before = (each.evidence("validation", "raw") for each in (stage, earlier))
    if after is None or before is None or after.images != before.images or after.images < FEW:
        return
    labels = stage.outline.get("labels") or {}
    fresh = stage.outline.get("start") is None and labels.get("fraction", 1.0) < 1.0
    change = evidence.difference([after], [before])
    if change.high < -(FRESH_WORSE if fresh else 0.0) and change.value <= -WORSE:
        text = f"validation got clearly worse than after {earlier.name}: {points(change)}"
        yield Finding("worse", stage.title, text, f"{_slower(job, stage)}, or --keep best")


def taught_by(stage: StageResult, labels: dict[str, str]) -> bool:
    """Whether a stage's net gave these pseudo labels. Release 0.1 recorded no line, and had one line per stage."""
    return stage.name == labels["by"] and stage.line == labels.get("line", stage.line)


def _alike(job: JobResult, stage: StageResult) -> Iterator[Finding]:
    """Yield a finding if student and teacher hardly differ, except for a student that continues its own teacher."""
    labels = stage.outline.get("labels") or {}
    if not weighs(stage) or not labels or labels["by"] == stage.outline.get("start"):
        return
    teacher = next(each for each in job.stages if taught_by(each, labels))
    told = (*_collapsed(job, teacher), *of_labels(job, stage))
    if any(finding.kind == "collapsed" for finding in told):  # the teacher's collapse is the cause, and was reported
        return
    text = _agreement(stage, teacher, labels)
    if text is not None:
        pair = len(job.lines) > 1
        ways = "two different nets or initial weights (--set net_b=…), or --set share=0.8" if pair else "fewer rounds"
        yield Finding("alike", stage.title, f"{text}: DMT then amounts to plain self-training", ways)


def _agreement(stage: StageResult, teacher: StageResult, labels: dict[str, object]) -> str | None:
    """Describe how similar student and teacher are, if they are too similar; None if they are not."""
    copy = "raw" if labels["copy"] == "mean" else str(labels["copy"])  # no evidence is kept of a mean of two nets
    mine, theirs = stage.evidence("validation", "raw"), teacher.evidence("validation", copy)
    if mine is None or theirs is None or mine.images != theirs.images:
        agree = [line["agree"] for line in stage.journal("interval") if "agree" in line]
        late = agree[-max(1, len(agree) // 4) :]
        # all nets agree on the most confident labels, so agreement is significant only if all labels are kept
        if not late or labels["fraction"] != 1.0 or float(np.mean(late)) < AGREE:
            return None
        return f"the net agrees with {float(np.mean(late)):.1%} of what {teacher.name} labeled"
    wrong = max(int(each.count[each.truth != each.said].sum()) for each in (mine, theirs))
    sites, apart = int(mine.count.sum()), evidence.apart(mine, theirs)
    if wrong < ENOUGH or apart * sites >= ALIKE * wrong:
        return None
    share = f"{apart:.1%} of validation, with an error rate of {wrong / sites:.1%}"
    return f"the net hardly differs from its teacher {teacher.name}: they disagree on {share}"


def _unsure(job: JobResult, stage: StageResult) -> Iterator[Finding]:
    """Yield a finding if validation is missing or too small; reported once, for the first net."""
    if stage is not job.stages[0] or stage.outcome is None or catalogue.get(job.method).ceiling:
        return  # the Oracle is trained on the validation images, too
    more = "more images in val/" if job.data in presets.OWN else "a higher --set validation=…"
    if "validation" not in stage.outcome["scores"]:
        if job.helps is not None:  # cross-validation on the labels has shown whether rounds help
            return
        text = "without validation images there is no way to tell whether a round helps, so the last net is used"
        yield Finding("unsure", stage.title, text, more)
        return
    found = stage.evidence("validation", "raw")
    if found is None or np.isnan(found.score()):
        return
    drawn = evidence.interval(found.score(), evidence.spread([found], []))
    margin = (drawn.high - drawn.low) / 2
    if margin > UNSURE or found.images < FEW:
        text = f"{found.images} validation images are too few to tell whether a round helps"
        text += f": a score of {drawn.value:.1f} may be off by {margin:.1f} points" if margin else ""
        yield Finding("unsure", stage.title, text, more)


def points(change: evidence.Interval) -> str:
    """Format a difference of scores and its interval."""
    return f"{signed(change.value)} points ({signed(change.low)} to {signed(change.high)})"


def signed(value: float) -> str:
    """Format a number with its sign and one decimal."""
    return f"{value:+.1f}".replace("-", "−")


def weighs(stage: StageResult) -> bool:
    """Whether the stage weights its pseudo labels, and so has a gamma."""
    return bool(stage.outline.get("objective", {}).get("weighting", "uniform") != "uniform")


def _before(job: JobResult, stage: StageResult) -> StageResult | None:
    """Return the stage of the previous round in the same line, if there is one."""
    return next((each for each in job.stages if (each.line, each.round) == (stage.line, stage.round - 1)), None)


def shares_of_labels(job: JobResult, stage: StageResult) -> np.ndarray | None:
    """Return (C,) the share of each class among the labels or, in older runs, validation images; None if unknown."""
    counts: Sequence[float] | None = (stage.labels or {}).get("labeled")
    if counts is None:
        scores = (job.stages[0].outcome or {"scores": {}})["scores"].get("validation", {}).get("raw", {})
        counts = np.array(scores["confusion"]).sum(1).tolist() if "confusion" in scores else None
    return None if counts is None or not sum(counts) else np.array(counts, dtype=float) / sum(counts)


def _vanished(job: JobResult, stage: StageResult, due: np.ndarray) -> set[int]:
    """Return classes that are hardly predicted or, once the curriculum is over, hardly among the kept labels."""
    assert stage.labels is not None
    fraction = (stage.outline.get("labels") or {}).get("fraction", 1.0)
    late = fraction >= CURRICULUM_ENDS or stage.name in job.results
    gone: set[int] = set()
    for counts in stage.labels["coverage"]["predicted"], stage.labels["coverage"]["kept"] if late else None:
        if counts is not None:
            expected = due * sum(counts)
            gone |= set(np.flatnonzero((np.array(counts) < VANISHED * expected) & (expected >= ENOUGH)).tolist())
    return gone


def _collapse(counts: np.ndarray, due: np.ndarray) -> int | None:
    """Return the class that has nearly all sites although other classes are expected; None if there is none."""
    if not counts.sum():
        return None
    top = int(counts.argmax())
    rest = 1.0 - counts[top] / counts.sum()
    return top if rest < 1.0 - COLLAPSED and rest < NEARLY_GONE * (1.0 - due[top]) else None


def names(job: JobResult, labels: Sequence[int]) -> str:
    """Format classes as 'class bird' or 'classes bird, cat and dog', or as their number if there are too many."""
    if len(labels) > NAMED:
        return f"{len(labels)} of the {len(job.classes)} classes" if job.classes else f"{len(labels)} classes"
    *most, last = [shown(job.classes[label]) if label < len(job.classes) else str(label) for label in labels]
    return f"classes {', '.join(most)} and {last}" if most else f"class {last}"


def option(job: JobResult, stage: StageResult, name: str) -> str:
    """Return the key that sets ``name`` for a stage: the method's own option if there is one, or the general one."""
    method = catalogue.get(job.method)
    own: type[MethodOptions] | None = method.options
    if method.family == "stored labels":  # an online stage may precede the rounds
        online = online_stages.options_of(stage.outline.get("objective", {}).get("kind", ""))
        if online is not None and name == "epochs":
            return "epochs_online_stage"
        own = online or own
    if stage.round and own is not None and name in {each.name for each in fields(own)}:
        return f"{own.group}.{name}"
    return f"{name}_round" if stage.round else name


def _slower(job: JobResult, stage: StageResult) -> str:
    """Return the remedy to halve a stage's learning rate, with the option that sets it."""
    rate = _rate(stage)
    key = option(job, stage, "rate")
    if rate is None:
        return f"a lower {key}"
    taught = {each.round: _rate(each) for each in job.stages if each.labels is not None}
    listed = key in BY_ROUND and stage.round in taught and len(set(taught.values())) > 1
    return f"a lower {key} in round {sorted(taught).index(stage.round) + 1}" if listed else f"--set {key}={rate / 2:g}"


def _rate(stage: StageResult) -> float | None:
    schedule = stage.outline.get("schedule", {})
    found: float | None = schedule.get("descent", schedule).get("rate")  # release 0.1 wrote it beside the epochs
    return found


def _trained(job: JobResult, stage: StageResult) -> str:
    """Return the remedy for a collapsed net: more epochs for a first net, a lower learning rate for later ones."""
    if _before(job, stage) is not None:
        return _slower(job, stage)
    epochs, key = stage.outline.get("schedule", {}).get("epochs"), option(job, stage, "epochs")
    longer = f"more {key}" if epochs is None else f"--set {key}={2 * epochs}"
    return f"{longer}, or {_slower(job, stage)}"


def _balanced(stage: StageResult) -> str:
    return "" if (stage.outline.get("labels") or {}).get("per_class") else "--set per_class=true or "
