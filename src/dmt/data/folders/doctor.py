"""The data doctor: what a user's folder holds and what is wrong with it, in words for people."""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dmt.data.folders.contents import FolderContents
from dmt.data.folders.photo_files import shown
from dmt.data.folders.photo_pools import NOTHING_UNLABELED
from dmt.data.folders.survey import Look, Spread, Survey

SEVERITIES = ("error", "warning", "note")
FEW = 5  # labels of a class; with masks twice as many images, since each shows several classes
NAMED = 5  # files that are named before "and N more"
ROWS = 60  # classes in the table
IMBALANCE = 20
SMALL = 16  # pixels
LONG = 8  # times as long as wide
IGNORED = 0.9


@dataclass(frozen=True)
class Issue:
    """Something a person should know.

    Attributes:
        severity: "error" if it would make a run meaningless, "warning" if a worse one, else "note".
        text: one line that says what to do.
        details: more lines, one a file.
    """

    severity: str
    text: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Diagnosis:
    """What was found, and all of it as text. Names in it are escaped; print it without markup."""

    issues: tuple[Issue, ...]
    text: str

    @property
    def fatal(self) -> bool:
        """Whether a run would be meaningless."""
        return any(issue.severity == "error" for issue in self.issues)


@dataclass(frozen=True)
class Overlap:
    """Two parts that should not share pictures: how bad it is if they do, exactly or nearly, and what to do."""

    first: str
    second: str
    exact: str
    near: str | None
    remedy: str


_MEMORY = "scores would reward memorization: remove them from one of the two"
_OVERLAPS = (
    Overlap("labeled", "test", "error", "warning", _MEMORY),
    Overlap("labeled", "validation", "warning", "warning", _MEMORY),
    Overlap("validation", "test", "warning", "note", "the test set would choose the net: "
            "remove them from one of the two"),
    Overlap("unlabeled", "test", "warning", "note", "nets would learn from test images, though not from their labels: "
            "remove them from unlabeled/, unless that is intended (transductive learning)"),
    Overlap("unlabeled", "validation", "note", None, "remove them from unlabeled/ for a fair choice of the net"),
    Overlap("labeled", "unlabeled", "note", None, "harmless: they get a pseudo label in addition to their own"),
)  # fmt: skip


def examine(
    contents: FolderContents, survey: Survey, forecast: str | None = None, choices: Sequence[str] = ()
) -> Diagnosis:
    """Say what is there, what is wrong, and what would be done.

    Args:
        forecast: a line about the time that a run will take.
        choices: a line for each thing that was decided from the data.
    """
    found = problems(contents, survey)
    plans = [*choices, *([] if forecast is None else [forecast])]
    blocks = [_overview(contents, survey), _wrong(found)]
    if plans:
        blocks.append("\n".join(["what it would do", *(f"  {shown(line)}" for line in plans)]))
    return Diagnosis(tuple(found), "\n\n".join(blocks) + "\n")


def problems(contents: FolderContents, survey: Survey) -> list[Issue]:
    """What is wrong, the worst first."""
    checks = (_unreadable, _labels, _scarce, _contradictions, _overlaps, _copies, _shapes, _masks, _notes)
    found = [issue for check in checks for issue in check(contents, survey)]
    return sorted(found, key=lambda issue: SEVERITIES.index(issue.severity))


def _overview(contents: FolderContents, survey: Survey) -> str:
    parts = [f"{len(photos):,} {name}" for name, photos in contents.parts() if photos]
    task = "segmentation" if contents.pixels else "classification"
    lines = [
        f"{shown(contents.root)}: {shown(contents.layout)}",
        f"{task}, {_count(len(contents.classes), 'class', 'classes')}; images: {', '.join(parts) or 'none'}",
        _table(contents, survey),
    ]
    seen = survey.dimensions
    if seen is not None:
        height, width = _range(seen.heights), _range(seen.widths)
        lines.append(f"sizes: height {height}; width {width}; aspect ratio {_range(seen.aspects)}")
    return "\n".join(lines)


def _table(contents: FolderContents, survey: Survey) -> str:
    """Images of each class, part by part; with masks, images that show it and its share of the pixels."""
    names = [name for name, photos in contents.parts() if photos and name != "unlabeled"]
    columns: dict[str, list[str]] = {}
    for name in names:
        columns[name] = [f"{count:,}" for count in survey.images(name)]
        if contents.pixels:
            columns[f"{name} pixels"] = [f"{share:.1%}" for share in survey.shares(name)]
    table = Table("class")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for label, name in enumerate(contents.classes[:ROWS]):
        table.add_row(Text(shown(name), no_wrap=True), *(values[label] for values in columns.values()))
    console = Console(file=io.StringIO(), width=140, color_system=None)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    more = len(contents.classes) - ROWS
    return console.file.getvalue().rstrip("\n") + (f"\nand {more:,} more classes" if more > 0 else "")


def _wrong(found: Sequence[Issue]) -> str:
    if not found:
        return "no problems found"
    counts = [(sum(issue.severity == each for issue in found), each) for each in SEVERITIES]
    said = ", ".join(_count(count, each, f"{each}s") for count, each in counts if count)
    advice = "; a run would be meaningless: fix the errors first" if counts[0][0] else ""
    lines = [f"found: {said}{advice}"]
    for issue in found:
        lines.append(f"  {issue.severity}: {issue.text}")
        lines += [f"      {detail}" for detail in issue.details]
    return "\n".join(lines)


def _unreadable(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    for part, photos in contents.parts():
        looks = survey.unreadable(part)
        root = f"{shown(contents.root)}/"
        reasons = [shown(look.problem or "").replace(root, "") for look in looks]  # they name files
        details = tuple(reasons[:NAMED] + [f"and {len(reasons) - NAMED:,} more"] * (len(reasons) > NAMED))
        what = f"{len(looks):,} of {_count(len(photos), f'{part} image')}"
        if looks and part != "unlabeled":
            yield Issue("error", f"{what} cannot be used; fix or remove them:", details)
        elif looks and len(looks) == len(photos):
            yield Issue("error", "no unlabeled image can be read; put images into unlabeled/ that can:", details)
        elif looks:
            yield Issue("warning", f"{what} cannot be read and will be skipped:", details)
    if not contents.unlabeled:
        text = "there are no unlabeled images to learn from; put some into unlabeled/"
        yield Issue("warning", text)


def _labels(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    """Whether there is something to tell apart, and every class to be tested can be learned."""
    if not contents.labeled:
        yield Issue("error", "there are no labeled images; label a few of each class")
        return
    counts = survey.images("labeled")
    missing = [label for label, count in enumerate(counts) if not count]
    if len(contents.classes) < 2:
        yield Issue("error", f"there are fewer than 2 classes{_listed(contents.classes, ': ')}; label another one too")
    elif len(counts) - len(missing) < 2:
        only = [name for name, count in zip(contents.classes, counts, strict=True) if count]
        where = "the labeled masks hold" if contents.pixels else "the usable labels hold"
        yield Issue("error", f"{where} {_listed(only) if only else 'nothing'} and no other class; label others too")
    tested = {part: survey.images(part) for part in ("validation", "test")}
    for part, seen in tested.items():
        lost = [contents.classes[label] for label in missing if seen[label]]
        if lost:
            remedy = f"label some, or take them out of {part}"
            yield Issue("error", f"{part} holds {_listed(lost)}, of which no image is labeled; {remedy}")
    idle = [contents.classes[label] for label in missing if not any(seen[label] for seen in tested.values())]
    if idle and len(contents.classes) > 1:
        yield Issue("warning", f"no image is labeled {_listed(idle)}, so no net will ever predict it; label some")


def _scarce(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    """Too few labels, of all classes or of some."""
    counts = {name: count for name, count in zip(contents.classes, survey.images("labeled"), strict=True) if count}
    if not counts:
        return
    few = [f"{_quoted(name)} ({count})" for name, count in counts.items() if count < FEW]
    what = f"fewer than {FEW} labels for {_enough(few)}"
    if contents.pixels:
        few = ["all"] if len(survey.usable("labeled")) < 2 * FEW else []
        what = f"fewer than {2 * FEW} images with masks"
    if few and not contents.validation:
        meaning = "no validation images can be held out, so no round is checked and the last net is used"
        yield Issue("warning", f"{what}: {meaning}; label more, or put labeled images into val/")
    least, most = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
    if counts[most] > IMBALANCE * counts[least]:
        ratio = f"{_quoted(most)} has {counts[most]:,} labeled images, {_quoted(least)} only {counts[least]:,}"
        text = f"classes are imbalanced, more than {IMBALANCE}:1: {ratio}; label more of the rare ones"
        yield Issue("warning", text)


def _contradictions(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    groups = [[look for look in group if look.truth is not None] for group in survey.duplicates.exact]
    groups = [group for group in groups if len({look.truth for look in group}) > 1]
    if groups:
        # two people never draw the same mask, but one picture cannot have two names
        severity, what = ("warning", "masks") if contents.pixels else ("error", "labels")
        count = _count(len(groups), "picture has", "pictures have")
        yield Issue(severity, f"{count} different {what}: {_enough(map(_same, groups))}; keep the right one")


def _overlaps(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    """Between parts; what is an exact copy is not reported again as a near one."""
    for each in _OVERLAPS:
        exact = survey.duplicates.shared(each.first, each.second)
        alike = survey.duplicates.shared(each.first, each.second, near=True)
        near = {name: other for name, other in alike.items() if name not in exact}
        one, many = f"{each.second} picture", f"{each.second} pictures"
        if exact:
            what = f"{_count(len(exact), f'{one} is', f'{many} are')} also in {each.first}"
            yield Issue(each.exact, f"{what}: {_pairs(exact, '=')}; {each.remedy}")
        if near and each.near is not None:
            what = f"{_count(len(near), f'{one} looks', f'{many} look')} like one in {each.first}"
            yield Issue(each.near, f"{what}: {_pairs(near, '≈')}; {each.remedy}")


def _copies(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    """Within a part."""
    for part in ("labeled", "unlabeled"):
        groups = [group for group in survey.duplicates.within(part) if len({look.truth for look in group}) == 1]
        if groups:
            spare = sum(len(group) - 1 for group in groups)
            what = _count(spare, f"{part} picture is a copy", f"{part} pictures are copies")
            yield Issue("note", f"{what} of others: {_enough(map(_same, groups))}; keep one of each")
    alike = survey.duplicates.within("labeled", near=True)
    if alike and not contents.validation:
        remedy = "validation images held out from them score too high; put other labeled images into val/"
        what = _count(len(alike), "group of labeled pictures looks", "groups of labeled pictures look")
        yield Issue("note", f"{what} alike: {_enough(_same(group, ' ≈ ') for group in alike)}; {remedy}")


def _shapes(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    sized = [(look.id, look.size) for look in survey.looks if look.size is not None]
    tiny = [name for name, size in sized if min(size) < SMALL]
    slim = [name for name, size in sized if max(size) > LONG * min(size)]
    dark = [look.id for look in survey.looks if not look.finite]
    kinds = {f"smaller than {SMALL} pixels": tiny, f"more than {LONG} times as long as wide": slim}
    for what, names in (kinds | {"read as nearly black, since values in it are NaN or infinite": dark}).items():
        if names:
            count = _count(len(names), "image is", "images are")
            yield Issue("warning", f"{count} {what}: {_listed(names)}; a net sees little in them, leave them out")


def _masks(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    if not contents.pixels:
        return
    known = [look for part in ("labeled", "validation", "test") for look in survey.usable(part)]
    blank = [look.id for look in known if look.ignored > IGNORED]
    if blank:
        what = _count(len(blank), "mask has", "masks have")
        text = f"{what} no label on more than {IGNORED:.0%} of the pixels: {_listed(blank)}; is that intended?"
        yield Issue("warning", text)
    lone = {label for label, count in enumerate(survey.images("labeled")) if count == 1}
    if lone and len(contents.labeled) > 1:
        where = {label: look.id for look in survey.usable("labeled") for label in look.present if label in lone}
        names = _enough(f"{_quoted(contents.classes[label])} in {_quoted(where[label])}" for label in sorted(lone))
        yield Issue("warning", f"classes that only one labeled image shows are hardly learned: {names}; label more")


def _notes(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    yield from (Issue("note", shown(note)) for note in contents.notes if note != NOTHING_UNLABELED)
    if contents.colors is not None and any("classes.txt" in note for note in contents.notes):
        color, label = next(iter(contents.colors.items()))
        example = f"'{shown(contents.classes[label])} {' '.join(map(str, color))}'"
        yield Issue("note", f"to name the classes of these colors write {shown(contents.root / 'classes.txt')}, "
                      f"a line each like {example}")  # fmt: skip


def _same(group: Iterable[Look], sign: str = " = ") -> str:
    return _enough((_quoted(look.id) for look in group), sign)


def _pairs(names: Mapping[str, str], sign: str) -> str:
    return _enough(f"{_quoted(name)} {sign} {_quoted(other)}" for name, other in names.items())


def _listed(names: Iterable[str], before: str = "") -> str:
    said = _enough(_quoted(name) for name in names)
    return f"{before}{said}" if said else ""


def _enough(items: Iterable[str], between: str = ", ") -> str:
    """The first few, and how many more."""
    every = list(items)
    more = f" and {len(every) - NAMED:,} more" if len(every) > NAMED else ""
    return between.join(every[:NAMED]) + more


def _quoted(name: str) -> str:
    """A name in one line, whatever it is made of."""
    return f"'{shown(name)}'"


def _count(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _range(values: Spread) -> str:
    least, median, greatest = (f"{round(value, 1):,g}" for value in values)
    return least if least == greatest else f"{least} to {greatest} (median {median})"
