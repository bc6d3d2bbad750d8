"""The table beside predicted masks: which mask belongs to which image, and so which files an earlier call wrote."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from dmt import csv_tables, files
from dmt.data.folders import photo_files
from dmt.data.folders.contents import Photo
from dmt.outputs import Kind
from dmt.use import predict_places

COLUMNS = ("file", "mask")
KIND = Kind("a table of dmt predict", ",".join(COLUMNS).encode())

MASKS, OVERLAYS = "masks", "overlays"
PNG = ".png"


def new_name(photo: Photo, folders: Iterable[Path], taken: set[str]) -> str:
    """Return the path of a mask or overlay below its folder: that of its image below the named folder or tar file.

    Args:
        photo: the image.
        folders: the folders whose images are read.
        taken: names in use, in small letters, to which this one is added; a number is appended to a name that is taken,
            also if it differs only in capital letters, which some file systems do not tell apart.
    """
    inside = _inside(photo, folders)
    above = "".join(f"{part.replace(PNG, '-png')}/" for part in inside.parts[:-1])  # no file has the name of a folder
    name, number = f"{above}{inside.stem}{PNG}", 1
    while name.lower() in taken:
        number += 1
        name = f"{above}{inside.stem}-{number}{PNG}"
    taken.add(name.lower())
    return name


def _inside(photo: Photo, folders: Iterable[Path]) -> Path:
    """Return the path of an image below its folder, or its name alone if that path could lead anywhere else."""
    path = photo.path
    if isinstance(path, Path):
        below = [path.relative_to(folder) for folder in folders if path.is_relative_to(folder)]
    else:
        below = [Path(photo_files.shown(photo.id))]
    return next((each for each in below if _stays(each)), Path(photo_files.shown(Path(photo.id).name)))


def _stays(path: Path) -> bool:
    return not path.anchor and ".." not in path.parts


def write(out: Path, rows: Iterable[Sequence[str]]) -> None:
    """Write the table: the file of each image as it was named, and that of its mask relative to ``out``."""
    files.write(out / predict_places.TABLE, csv_tables.table(COLUMNS, rows))


def remove_earlier(out: Path) -> None:
    """Remove the masks and overlays that the table in a folder names, and folders that are empty then."""
    for mask in _earlier(out):
        for kind in (MASKS, OVERLAYS):
            path = out / kind / mask
            if path.is_file() and path.parent.resolve().is_relative_to((out / kind).resolve()):
                path.unlink()
                _remove_empty(path.parent, out / kind)


def _earlier(out: Path) -> Iterator[Path]:
    """Yield the paths of the masks in a table, relative to their folder; no other paths, whatever it holds."""
    for _, name in _rows(out / predict_places.TABLE):
        kind, *inside = Path(csv_tables.plain(name)).parts or ("",)
        if kind == MASKS and inside and _stays(Path(*inside)):
            yield Path(*inside)


def _rows(table: Path) -> list[list[str]]:
    """Return the rows of a table, or none if it is not one of ours."""
    if not table.is_file():
        return []
    try:
        rows = list(csv.reader(io.StringIO(table.read_text(encoding="utf-8"), newline="")))
    except (csv.Error, UnicodeDecodeError):
        return []
    ours = rows[:1] == [list(COLUMNS)] and all(len(row) == len(COLUMNS) for row in rows)
    return rows[1:] if ours else []


def _remove_empty(folder: Path, top: Path) -> None:
    while folder != top and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
