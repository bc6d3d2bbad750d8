"""Check of a user's folder before a run: with errors that ``dmt check`` reports, its scores would be meaningless."""

import shlex
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from dmt.data.folders import doctor_rules, photos, survey
from dmt.data.folders.doctor_issues import Issue
from dmt.data.folders.photo_files import shown
from dmt.errors import DataError
from dmt.runs import progress


@dataclass(frozen=True)
class Found:
    """What a check found, a line each.

    Attributes:
        errors: what would make a run meaningless.
        warnings: what would make it worse.
    """

    errors: tuple[str, ...]
    warnings: tuple[str, ...]


def check(folder: Path, watcher: progress.Watcher | None = None) -> Found:
    """Check the labeled images of a folder as ``dmt check`` does.

    Unlabeled images, which are most of a folder, are not checked: the only error about them, that none can be read,
    is raised when they are read for training.
    """
    contents = replace(photos.open_folder(folder), unlabeled=())
    watching: AbstractContextManager[progress.Watcher] = progress.default() if watcher is None else nullcontext(watcher)
    with watching as hears:
        seen = survey.survey(contents, lambda done, of: hears.busy("checking labeled images", done, of))
    found = [each for each in doctor_rules.problems(contents, seen) if each.text != doctor_rules.NONE_UNLABELED]
    errors, warnings = (
        tuple(_line(each) for each in found if each.severity == severity) for severity in ("error", "warning")
    )
    return Found(errors, warnings)


def require_none(folder: Path, found: tuple[str, ...]) -> None:
    """Raise a `DataError` that names the first of these errors, if there are any."""
    if not found:
        return
    more = f" (and {len(found) - 1} more error{'s' if len(found) > 2 else ''})" if len(found) > 1 else ""
    see = f"dmt check {shlex.quote(shown(folder))} shows all of it, --anyway trains nevertheless"
    raise DataError(f"a run on {shown(folder)} would be meaningless: {found[0]}{more}; {see}")


def _line(issue: Issue) -> str:
    """Return the text of an issue with the first of its details, which name files and reasons."""
    return " ".join([issue.text, *issue.details[:1]])
