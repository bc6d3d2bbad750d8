"""The doctor's rules: one function per problem that a user's folder may have."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dmt.data.folders import doctor_mask_rules, phrases
from dmt.data.folders.contents import FolderContents
from dmt.data.folders.doctor_issues import SEVERITIES, Issue
from dmt.data.folders.photo_files import shown
from dmt.data.folders.photo_pools import NOTHING_UNLABELED
from dmt.data.folders.survey import Look, Survey

FEW = 5  # a class with fewer labels is scarce; with masks, twice as many images in all
IMBALANCE = 20  # classes are imbalanced if the ratio of their numbers of labels is greater
JUDGES = 100  # test images needed for a meaningful verdict; a fifth of that with masks, which have many pixels each
DIFFER = 0.2  # typical share of the images on which only one of two nets is right
ENOUGH = 50  # labeled images in test/ with which a result begins to mean something
SMALL = 16  # pixels
LONG = 8  # greatest ratio of an image's sides
NONE_UNLABELED = "there are no unlabeled images to learn from; put some into unlabeled/"


@dataclass(frozen=True)
class Overlap:
    """Two parts that should not share pictures, and what to report if they do.

    Attributes:
        first, second: names of the parts.
        exact: severity if they share equal pictures.
        near: severity if they share similar pictures; None if that is not reported.
        remedy: what to do about it.
    """

    first: str
    second: str
    exact: str
    near: str | None
    remedy: str


_LITTLE = "a net sees little in them, leave them out"
_VALUES = {
    "infinite": ("read as nearly black, since values in it are NaN or infinite", _LITTLE),
    "faint": ("read as dark, since their values use only a small part of 16 bits",
              "multiply all by one factor so that they reach 65535 (12 bits by 16)"),
    "stretched": ("stretched from their own least to their greatest value, as these are outside of 0 to 255 or 65535",
                  "save all with one common scale, for example in 8 bits"),
}  # fmt: skip
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


def problems(contents: FolderContents, survey: Survey) -> list[Issue]:
    """Return all problems of a folder, the most severe first."""
    checks = (
        _unreadable,
        _labels,
        _names,
        _scarce,
        _few_tests,
        _untested,
        _contradictions,
        _overlaps,
        _copies,
        _shapes,
        _values,
        _pages,
        *doctor_mask_rules.CHECKS,
        _notes,
    )
    found = [issue for check in checks for issue in check(contents, survey)]
    return sorted(found, key=lambda issue: SEVERITIES.index(issue.severity))


def _unreadable(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    for part, photos in contents.parts():
        looks = survey.unreadable(part)
        root = f"{shown(contents.root)}/"
        reasons = [shown(look.problem or "").replace(root, "") for look in looks]  # reasons name files
        more = len(reasons) - phrases.NAMED
        details = tuple(reasons[: phrases.NAMED] + [f"and {more:,} more"] * (more > 0))
        what = f"{len(looks):,} of {phrases.count(len(photos), f'{part} image')}"
        if looks and part != "unlabeled":
            yield Issue("error", f"{what} cannot be used; fix or remove them:", details)
        elif looks and len(looks) == len(photos):
            yield Issue("error", "no unlabeled image can be read; put images into unlabeled/ that can:", details)
        elif looks:
            yield Issue("warning", f"{what} cannot be read and will be skipped:", details)
    if not contents.unlabeled:
        yield Issue("warning", NONE_UNLABELED)


def _labels(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    """Check that at least two classes have labels, and that every class in validation and test has some."""
    if not contents.labeled:
        yield Issue("error", "there are no labeled images; label a few of each class")
        return
    counts = survey.images("labeled")
    missing = [label for label, count in enumerate(counts) if not count]
    if len(contents.classes) < 2:
        yield Issue(
            "error", f"there are fewer than 2 classes{phrases.listed(contents.classes, ': ')}; label another one too"
        )
    elif len(counts) - len(missing) < 2:
        only = [name for name, count in zip(contents.classes, counts, strict=True) if count]
        where = "the labeled masks hold" if contents.pixels else "the usable labels hold"
        yield Issue(
            "error", f"{where} {phrases.listed(only) if only else 'nothing'} and no other class; label others too"
        )
    tested = {part: survey.images(part) for part in ("validation", "test")}
    for part, seen in tested.items():
        lost = [contents.classes[label] for label in missing if seen[label]]
        if lost:
            remedy = f"label some, or take them out of {part}"
            yield Issue("error", f"{part} holds {phrases.listed(lost)}, of which no image is labeled; {remedy}")
    idle = [contents.classes[label] for label in missing if not any(seen[label] for seen in tested.values())]
    if idle and len(contents.classes) > 1:
        yield Issue(
            "warning", f"no image is labeled {phrases.listed(idle)}, so no net will ever predict it; label some"
        )


def _names(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    """Report class names that differ only in case or surrounding spaces, and so are probably one class."""
    alike: dict[str, list[str]] = {}
    for name in contents.classes:
        alike.setdefault(name.strip().casefold(), []).append(name)
    for same in (names for names in alike.values() if len(names) > 1):
        named = phrases.enough(map(phrases.quoted, same), " and ")
        text = (
            f"the classes {named} differ only in capitals or in spaces around them, probably a typo; give them one name"
        )
        yield Issue("warning", text)


def _scarce(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    """Report classes with too few labels, too few images with masks, and imbalanced classes."""
    counts = {name: count for name, count in zip(contents.classes, survey.images("labeled"), strict=True) if count}
    if not counts:
        return
    few = [f"{phrases.quoted(name)} ({count})" for name, count in counts.items() if count < FEW]
    what = f"fewer than {FEW} labels for {phrases.enough(few)}"
    if contents.pixels:
        few = ["all"] if len(survey.usable("labeled")) < 2 * FEW else []
        what = f"fewer than {2 * FEW} images with masks"
    if few and not contents.validation:
        meaning = "no validation images can be held out, so no round is checked and the last net is used"
        remedy = "label more, or put labeled images into val/"
        if not contents.test:
            meaning = "none can be held out, so without test/ nothing measures whether unlabeled images help"
            remedy = f"put {ENOUGH} labeled images or more into test/"
        yield Issue("warning", f"{what}: {meaning}; {remedy}")
    elif not contents.test and not contents.validation:
        text = "there is no test/: results are measured on labels that are held out for choosing the nets"
        yield Issue("note", f"{text}; put {ENOUGH} labeled images or more into test/")
    least, most = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
    if counts[most] > IMBALANCE * counts[least]:
        frequent, rare = map(phrases.quoted, (most, least))
        ratio = f"{frequent} has {counts[most]:,} labeled images, {rare} only {counts[least]:,}"
        text = f"classes are imbalanced, more than {IMBALANCE}:1: {ratio}; label more of the rare ones"
        yield Issue("warning", text)


def _few_tests(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    """Report too few test images for a meaningful verdict."""
    count = len(survey.usable("test"))
    if not 0 < count < (JUDGES // 5 if contents.pixels else JUDGES):
        return
    what = f"only {phrases.count(count, 'test image')}"
    if contents.pixels:
        yield Issue("note", f"{what}: whether unlabeled images help will be hard to tell; put more into test/")
        return
    gain = 100 * 1.645 * math.sqrt(DIFFER / count)  # half the width of a 90 % interval of a paired difference
    text = f"{what}: a gain of less than about {gain:.0f} points will be indistinguishable from chance"
    yield Issue("note", f"{text}; put more labeled images into test/")


def _untested(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    """Report classes that are learned but that no test image shows."""
    counts = zip(contents.classes, survey.images("labeled"), survey.images("test"), strict=True)
    untested = [name for name, labeled, tested in counts if labeled and not tested]
    if untested and survey.usable("test"):
        them = "it is" if len(untested) == 1 else "they are"
        text = f"no test image shows {phrases.listed(untested)}, so {them} not tested at all; put some into test/"
        yield Issue("note", text)


def _contradictions(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    groups = [[look for look in group if look.truth is not None] for group in survey.duplicates.exact]
    groups = [group for group in groups if len({look.truth for look in group}) > 1]
    if groups:
        # two people never draw exactly the same mask, but one picture cannot belong to two classes
        severity, what = ("warning", "masks") if contents.pixels else ("error", "labels")
        count = phrases.count(len(groups), "picture has", "pictures have")
        yield Issue(severity, f"{count} different {what}: {phrases.enough(map(_same, groups))}; keep the right one")


def _overlaps(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    """Report pictures that two parts share. An exact copy is not reported as a near one, too."""
    for each in _OVERLAPS:
        exact = survey.duplicates.shared(each.first, each.second)
        alike = survey.duplicates.shared(each.first, each.second, near=True)
        near = {name: other for name, other in alike.items() if name not in exact}
        one, many = f"{each.second} picture", f"{each.second} pictures"
        if exact:
            what = f"{phrases.count(len(exact), f'{one} is', f'{many} are')} also in {each.first}"
            yield Issue(each.exact, f"{what}: {_pairs(exact, '=')}; {each.remedy}")
        if near and each.near is not None:
            what = f"{phrases.count(len(near), f'{one} looks', f'{many} look')} like one in {each.first}"
            doubt = "look at them before you remove any; if they are the same photos"
            yield Issue(each.near, f"{what}: {_pairs(near, '≈')}; {doubt}, {each.remedy}")


def _copies(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    """Report pictures that occur more than once within a part."""
    for part in ("labeled", "unlabeled"):
        groups = [group for group in survey.duplicates.within(part) if len({look.truth for look in group}) == 1]
        if groups:
            spare = sum(len(group) - 1 for group in groups)
            what = phrases.count(spare, f"{part} picture is a copy", f"{part} pictures are copies")
            yield Issue("note", f"{what} of others: {phrases.enough(map(_same, groups))}; keep one of each")
    alike = survey.duplicates.within("labeled", near=True)
    if alike and not contents.validation:
        remedy = "validation images held out from them score too high; put other labeled images into val/"
        what = phrases.count(len(alike), "group of labeled pictures looks", "groups of labeled pictures look")
        yield Issue("note", f"{what} alike: {phrases.enough(_same(group, ' ≈ ') for group in alike)}; {remedy}")


def _shapes(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    sized = [(look.id, look.size) for look in survey.looks if look.size is not None]
    tiny = [name for name, size in sized if min(size) < SMALL]
    slim = [name for name, size in sized if max(size) > LONG * min(size)]
    for what, names in {f"smaller than {SMALL} pixels": tiny, f"more than {LONG} times as long as wide": slim}.items():
        if names:
            count = phrases.count(len(names), "image is", "images are")
            yield Issue("warning", f"{count} {what}: {phrases.listed(names)}; {_LITTLE}")


def _values(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    """Report images of more than 8 bits that lose their contrast or their common scale when they are read."""
    for kind, (what, remedy) in _VALUES.items():
        names = [look.id for look in survey.looks if look.values == kind]
        if names:
            count = phrases.count(len(names), "image is", "images are")
            yield Issue("warning", f"{count} {what}: {phrases.listed(names)}; {remedy}")


def _pages(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    """Report files with several pages, as microscopes write them: all pages but the first are left out."""
    names = [look.id for look in survey.looks if look.pages > 1]
    if names:
        lost = sum(look.pages - 1 for look in survey.looks)
        count = phrases.count(len(names), "file has", "files have")
        what = f"{count} several pages: {phrases.listed(names)}; only the first of each is read"
        yield Issue("warning", f"{what}, {lost:,} are not; save every page as a file of its own to use them")


def _notes(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    yield from (Issue("note", shown(note)) for note in contents.notes if note != NOTHING_UNLABELED)
    if contents.colors is not None and any("classes.txt" in note for note in contents.notes):
        color, label = next(iter(contents.colors.items()))
        example = f"'{shown(contents.classes[label])} {' '.join(map(str, color))}'"
        yield Issue("note", f"to name the classes of these colors write {shown(contents.root / 'classes.txt')}, "
                      f"a line each like {example}")  # fmt: skip


def _same(group: Iterable[Look], sign: str = " = ") -> str:
    return phrases.enough((phrases.quoted(look.id) for look in group), sign)


def _pairs(names: Mapping[str, str], sign: str) -> str:
    return phrases.enough(f"{phrases.quoted(name)} {sign} {phrases.quoted(other)}" for name, other in names.items())
