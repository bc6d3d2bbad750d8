"""The doctor's rules for masks: one function per problem."""

from collections.abc import Iterator

from dmt.data.folders import phrases
from dmt.data.folders.contents import FolderContents
from dmt.data.folders.doctor_issues import Issue
from dmt.data.folders.survey import Look, Survey

IGNORED = 0.9  # greatest share of a mask's pixels without a label
RARE = 0.02  # share of the labeled pixels below which a gray is rather an edge than a class
_BLACK, _WHITE = (0, 0, 0), (255, 255, 255)


def _masked(contents: FolderContents, survey: Survey) -> list[Look]:
    """Return all photos with a usable mask."""
    return [look for part in ("labeled", "validation", "test") for look in survey.usable(part) if contents.pixels]


def _blank(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    blank = [look.id for look in _masked(contents, survey) if look.ignored > IGNORED]
    if blank:
        what = phrases.count(len(blank), "mask has", "masks have")
        text = f"{what} no label on more than {IGNORED:.0%} of the pixels: {phrases.listed(blank)}; is that intended?"
        yield Issue("warning", text)


def _lone(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    lone = {label for label, count in enumerate(survey.images("labeled")) if count == 1}
    if lone and contents.pixels and len(contents.labeled) > 1:
        where = {label: look.id for look in survey.usable("labeled") for label in look.present if label in lone}
        names = phrases.enough(
            f"{phrases.quoted(contents.classes[label])} in {phrases.quoted(where[label])}" for label in sorted(lone)
        )
        yield Issue("warning", f"classes that only one labeled image shows are hardly learned: {names}; label more")


def _only_void(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    """Report masks of two classes that show only the first and "no label", since 255 may have meant the second."""
    if contents.colors is not None or len(contents.classes) != 2:
        return
    looks = _masked(contents, survey)
    found = [look.id for look in looks if look.present == [0] and look.ignored]
    if not found:
        return
    what = f"{phrases.count(len(found), 'mask holds', 'masks hold')} only 0 and 255: {phrases.listed(found)}; there 255"
    second = f"write 1 for {phrases.quoted(contents.classes[1])}"
    if any(1 in look.present for look in looks):
        yield Issue("warning", f"{what} is read as 'no label'; if it marks the second class, {second}")
    else:
        yield Issue("error", f"{what} means 'no label', and no mask holds 1; {second}")


def _rotated(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    """Report photos that programs show differently, depending on whether they heed EXIF data."""
    found = [look.id for look in survey.looks if look.rotated]
    if found:
        what = phrases.count(len(found), "photo with a mask is", "photos with masks are")
        remedy = "masks must be drawn on the upright photo, as image viewers show it"
        yield Issue("note", f"{what} rotated by EXIF data: {phrases.listed(found)}; {remedy}")


def _smooth(contents: FolderContents, survey: Survey) -> Iterator[Issue]:
    """Report rare grays between black and white: smooth edges of black and white masks, rather than classes."""
    colors = contents.colors or {}
    inferred = any("no classes.txt" in note for note in contents.notes)
    gray = all(red == green == blue for red, green, blue in colors)
    if not (inferred and gray and colors.keys() >= {_BLACK, _WHITE}):
        return
    shares = survey.shares("labeled")
    between = (label for color, label in colors.items() if color not in (_BLACK, _WHITE))
    names = [contents.classes[label] for label in between if shares[label] < RARE]
    if names:
        what = phrases.count(len(names), "gray between black and white is", "grays between black and white are")
        remedy = "resize masks by nearest neighbor, not smoothly, or if these are classes name them in classes.txt"
        yield Issue("warning", f"{what} rare and probably no class: {phrases.listed(names)}; {remedy}")


CHECKS = (_blank, _lone, _only_void, _rotated, _smooth)
