"""Read a folder of images with a CSV table that gives some of them labels."""

import csv
import io
import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dmt import csv_tables
from dmt.data.folders import photo_files, photo_layouts, shards
from dmt.data.folders.contents import FolderContents, Photo
from dmt.data.folders.photo_files import EXTENSIONS, Leftovers, shown
from dmt.data.folders.photo_pools import Pool
from dmt.errors import DataError

_FILE = ("file", "filename", "file_name", "path", "image")
_LABEL = ("label", "class", "category")
_ABSOLUTE = re.compile(r"/|[A-Za-z]:/")
_SPLITS = {
    "": "", "train": "train", "training": "train", "unlabeled": "train",
    "val": "validation", "valid": "validation", "validation": "validation", "test": "test",
}  # fmt: skip


def path(folder: Path) -> Path | None:
    """Return the table of labels in a folder, or None if it has no CSV file."""
    tables = sorted(each for each in folder.iterdir() if each.suffix.lower() == ".csv" and each.is_file())
    tables = [each for each in tables if not photo_files.hidden(each.name)]
    named = [each for each in tables if each.name.lower() == "labels.csv"]
    if not named and len(tables) > 1:
        raise DataError(f"{shown(folder)} has {len(tables)} CSV files; name the one with the labels labels.csv")
    return next(iter(named or tables), None)


@dataclass(frozen=True)
class _Row:
    line: int
    file: str
    label: str
    part: str  # empty if the table does not say


def contents(root: Path, table: Path, found: dict[str, Path], leftovers: Leftovers) -> FolderContents:
    """Read a folder of images with a table that gives some of them labels."""
    held = photo_layouts.held_out(root)
    rows, notes = _placed(root, table, found, {folder.name.lower(): part for part, folder in held.items()})
    labeled = {id: row for id, row in rows.items() if row.label}
    classes = tuple(sorted({row.label for row in labeled.values() if row.part == "train"}, key=photo_layouts.natural))
    if not classes:
        raise DataError(f"{shown(table)} gives no training image a label; fill in the column of labels")
    if len(classes) == 1:
        notes.append(f"there is only one class, '{shown(classes[0])}'")
    parts: dict[str, list[Photo]] = {"train": [], "validation": [], "test": []}
    for id, row in sorted(labeled.items()):
        if row.label not in classes:
            raise DataError(
                f"{shown(table)}, line {row.line}: no training image has the class '{shown(row.label)}'; add one"
            )
        parts[row.part].append(Photo(id, found[id], classes.index(row.label)))
    blind = [id for id, row in rows.items() if not row.label and row.part != "train"]
    if blind:
        notes.append(f"{len(blind)} images held out have no label and are left out, the first is {shown(blind[0])}")
    aside = {part: _of_folder(folder, root, rows, classes, notes) for part, folder in held.items()}
    tops = {folder.name.lower() for folder in held.values()}
    unnamed = sum(id not in rows and _top(id) not in tops for id in found)
    if unnamed:
        notes.append(f"{unnamed:,} images are not in {shown(table.name)} and count as unlabeled")
    skipped = {*labeled, *blind, *(id for id in found if _top(id) in tops)}
    unlabeled = tuple(Photo(id, path) for id, path in sorted(found.items()) if id not in skipped)
    spare = photo_layouts.child(root, *photo_layouts.UNLABELED)
    tars = tuple(shards.below(spare, leftovers)) if spare is not None else ()
    leftovers.endings[".csv"] -= 1  # the table itself
    used = [
        f"a folder of images with {shown(table.name)}",
        *([f"shards in {shown(spare.name)}/"] if spare is not None and tars else []),
        *(f"{shown(held[part].name)}/" for part in aside if aside[part]),
    ]
    return FolderContents(
        root=root,
        layout=f"{photo_layouts.several(used)}: images of {photo_layouts.counted(classes)}",
        pixels=False,
        classes=classes,
        labeled=tuple(parts["train"]),
        unlabeled=Pool(unlabeled, tars) if tars else unlabeled,
        validation=(*parts["validation"], *aside.get("validation", ())),
        test=(*parts["test"], *aside.get("test", ())),
        notes=(*notes, *leftovers.notes()),
    )


def _top(id: str) -> str:
    """Return the name of the top-level folder that an image lies in, in small letters; empty if it lies in none."""
    return id.partition("/")[0].lower() if "/" in id else ""


def _of_folder(
    folder: Path, root: Path, rows: Iterable[str], classes: tuple[str, ...], notes: list[str]
) -> tuple[Photo, ...]:
    """Return the photos in the class folders of ``val/`` or ``test/``, unless the table names images in there."""
    if folder.name.lower() not in map(_top, rows):
        counted_before = Leftovers()  # when all of the root was searched
        return photo_layouts.known(folder, root, classes, counted_before, notes)
    unnamed = photo_files.find(folder, root, Leftovers()).keys() - set(rows)
    if unnamed:
        notes.append(f"{len(unnamed):,} images in {shown(folder.name)}/ are not in the table and are left out")
    return ()


def _placed(
    root: Path, table: Path, found: dict[str, Path], held: Mapping[str, str]
) -> tuple[dict[str, _Row], list[str]]:
    """Return the row of each image that the table names, with its part, and notes.

    Images that only the table knows, hidden ones for example, are added to ``found``. ``held`` maps the names of the
    folders of held-out images to their parts.
    """
    shared = posixpath.commonpath([posixpath.dirname(id) for id in found if _top(id) not in held] or [""])
    plain = {unicodedata.normalize("NFC", id): id for id in found}  # macOS, for example, may store é as e and an accent
    rows: dict[str, _Row] = {}
    lost: list[_Row] = []
    repeated = 0
    for row in _rows(table):
        inside = row.file if row.file in found else _inside(root, table, row)
        tries = [unicodedata.normalize("NFC", each) for each in (inside, posixpath.join(shared, inside))]
        id = next((plain[each] for each in tries if each in plain), inside)
        if id not in found and posixpath.splitext(id)[1].lower() in EXTENSIONS and _is_file(root / id):
            found[id] = root / id  # hidden, or behind a link that was not searched
        if id not in found:
            lost.append(row)
            continue
        row = replace(row, part=_part(table, row, held.get(_top(id), "")))
        if id in rows and (rows[id].label, rows[id].part) != (row.label, row.part):
            first = rows[id]
            raise DataError(
                f"{shown(table)} gives two labels to '{shown(id)}': '{shown(first.label)}' in line {first.line} "
                f"({first.part}), '{shown(row.label)}' in line {row.line} ({row.part}); keep one"
            )
        repeated += id in rows
        rows.setdefault(id, row)
    if lost:
        raise DataError(
            f"{shown(table)} names {len(lost)} files that do not exist or are not images, the first is "
            f"'{shown(lost[0].file)}' (line {lost[0].line}); add them or remove their rows"
        )
    return rows, [f"{repeated} rows of {shown(table.name)} repeat earlier ones"] if repeated else []


def _part(table: Path, row: _Row, held: str) -> str:
    """Return the part of an image that may lie in the folder of the part ``held``."""
    if held and row.part not in ("", held):
        raise DataError(
            f"{shown(table)}, line {row.line}: '{shown(row.file)}' lies in the folder of {held} images, but its split "
            f"is another; move the file or change the split"
        )
    return row.part or held or "train"


def _inside(root: Path, table: Path, row: _Row) -> str:
    """Return the file of a row as a normalized path relative to the folder; refuse paths that leave it."""
    path = posixpath.normpath(row.file.replace("\\", "/"))
    if _ABSOLUTE.match(path):
        for base in (root.absolute(), root.resolve()):
            path = path.removeprefix(f"{base.as_posix().rstrip('/')}/")
    if _ABSOLUTE.match(path) or path.split("/")[0] == "..":
        raise DataError(
            f"{shown(table)}, line {row.line}: '{shown(row.file)}' leaves the folder; give paths relative to the table"
        )
    return path


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long for a file
        return False


def _rows(table: Path) -> Iterator[_Row]:
    """Yield the rows that are not empty, with the number of the line on which each ends."""
    text = _text(table)
    head = text.split("\n", 1)[0]
    separator = max(",;\t", key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        names = [name.strip().lower() for name in next(reader, [])]
        file, label, split = (_column(names, known) for known in (_FILE, _LABEL, ("split",)))
        if file is None or label is None:
            raise DataError(
                f"{shown(table)} needs a first line with the columns file and label; {_wrong(names, separator)}"
            )
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield _row(table, reader.line_num, cells, (len(names), file, label, split))
    except csv.Error as error:
        raise DataError(f"{shown(table)}, line {reader.line_num}: {error}; save it as a CSV table") from error


def _wrong(names: list[str], separator: str) -> str:
    """Say what is wrong with the first line of a table."""
    is_file = [posixpath.splitext(name)[1] in EXTENSIONS for name in names]
    if not any(is_file) or len(names) < 2:
        return f"it has {shown(', '.join(names)) or 'none'}"
    file = is_file.index(True)
    label = 0 if file else 1
    header = ["file" if at == file else "label" if at == label else f"column{at + 1}" for at in range(len(names))]
    seen, wanted = shown(", ".join(names)), shown(separator.join(header))
    return f"its first line seems to be data ({seen}); add the line {wanted} above it"


def _column(names: list[str], known: tuple[str, ...]) -> int | None:
    return next((names.index(name) for name in known if name in names), None)


def _row(table: Path, line: int, cells: list[str], columns: tuple[int, int, int, int | None]) -> _Row:
    count, file, label, split = columns
    where = f"{shown(table)}, line {line}"
    if len(cells) > count and any(cell.strip() for cell in cells[count:]):
        raise DataError(f"{where}: {len(cells)} values for {count} columns; put names with a comma into quotes")
    cells += [""] * (count - len(cells))
    part = cells[split].strip().lower() if split is not None else ""
    if not cells[file].strip():
        raise DataError(f"{where}: the name of the file is empty; fill it in or remove the row")
    if part not in _SPLITS:
        raise DataError(f"{where}: the split is '{shown(part)}'; write train, val or test")
    name, called = (csv_tables.plain(cells[at].strip()) for at in (file, label))
    return _Row(line, name, called, _SPLITS[part])


_SAVE = "save it as UTF-8 CSV, which Excel calls 'CSV UTF-8 (comma delimited)'"


def _text(table: Path) -> str:
    try:
        content = table.read_bytes()
        wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))  # "Unicode text" of spreadsheet programs
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{shown(table)} is not UTF-8 text; {_SAVE}") from error
    except OSError as error:
        raise DataError(f"cannot read {shown(table)} ({error.strerror}); allow reading it") from error
    if "\0" in text:
        raise DataError(f"{shown(table)} is not a text file; {_SAVE}")
    return text
