"""The data doctor: a readable report of what a user's folder holds and what is wrong with it."""

import io
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dmt.data.folders import doctor_rules, phrases
from dmt.data.folders.contents import FolderContents
from dmt.data.folders.doctor_issues import SEVERITIES, Issue
from dmt.data.folders.photo_files import shown
from dmt.data.folders.survey import Survey

ROWS = 60  # most classes in the table


@dataclass(frozen=True)
class Diagnosis:
    """The issues found, and the whole report as text. File names in it are escaped; print it without markup."""

    issues: tuple[Issue, ...]
    text: str

    @property
    def fatal(self) -> bool:
        """Whether an error was found, so that a run would be meaningless."""
        return any(issue.severity == "error" for issue in self.issues)


def examine(
    contents: FolderContents, survey: Survey, forecast: str | None = None, choices: Sequence[str] = ()
) -> Diagnosis:
    """Report what a folder holds, what is wrong with it, and what a run would do.

    Args:
        contents: the folder.
        survey: what was seen in its files.
        forecast: a line about the time that a run will take.
        choices: a line for each choice that was made from the data.
    """
    found = doctor_rules.problems(contents, survey)
    plans = [*choices, *([] if forecast is None else [forecast])]
    blocks = [_overview(contents, survey), _wrong(found)]
    if plans:
        blocks.append("\n".join(["what it would do", *(f"  {shown(line)}" for line in plans)]))
    return Diagnosis(tuple(found), "\n\n".join(blocks) + "\n")


def _overview(contents: FolderContents, survey: Survey) -> str:
    parts = [f"{len(photos):,} {name}" for name, photos in contents.parts() if photos]
    task = "segmentation" if contents.pixels else "classification"
    lines = [
        f"{shown(contents.root)}: {shown(contents.layout)}",
        f"{task}, {phrases.count(len(contents.classes), 'class', 'classes')}; images: {', '.join(parts) or 'none'}",
        _table(contents, survey),
    ]
    seen = survey.dimensions
    if seen is not None:
        height, width = phrases.spread(seen.heights), phrases.spread(seen.widths)
        lines.append(f"sizes: height {height}; width {width}; aspect ratio {phrases.spread(seen.aspects)}")
    return "\n".join(lines)


def _table(contents: FolderContents, survey: Survey) -> str:
    """Return a table of the images per class and part; with masks, also the class's share of the pixels."""
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
    said = ", ".join(phrases.count(count, each, f"{each}s") for count, each in counts if count)
    advice = "; a run would be meaningless: fix the errors first" if counts[0][0] else ""
    lines = [f"found: {said}{advice}"]
    for issue in found:
        lines.append(f"  {issue.severity}: {issue.text}")
        lines += [f"      {detail}" for detail in issue.details]
    return "\n".join(lines)
