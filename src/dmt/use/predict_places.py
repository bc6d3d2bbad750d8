"""Where predictions are written: what ``--out`` names, and whether images lie there."""

import os
from collections.abc import Iterable
from pathlib import Path

from dmt import outputs
from dmt.data.folders import tar_places
from dmt.data.folders.photo_files import EXTENSIONS
from dmt.errors import ConfigError, RunError
from dmt.use.predict_inputs import Inputs

TABLE = "pred.csv"
"""Name of the table in a folder of predictions."""

_SEPARATORS = tuple(each for each in (os.sep, os.altsep) if each)


def table(out: str) -> Path:
    """Return the CSV that ``--out`` names: a file, or one in a folder, that is, in a name that has no ending."""
    return Path(out) / TABLE if _is_folder(out) or not Path(out).suffix else Path(out)


def mask(out: str, inputs: Inputs) -> Path | None:
    """Return the file for the mask of a single image, if ``--out`` names one; None if it names a folder."""
    ending = Path(out).suffix.lower()
    if _is_folder(out) or ending not in (*EXTENSIONS, ".csv"):
        return None
    if ending != ".png":
        raise ConfigError(f"masks are PNG files, and --out {out} is not one; give a folder, {out}/ for example")
    if not inputs.single:
        raise ConfigError(f"--out {out} is a file for the mask of one image; for more give a folder, with / at its end")
    return Path(out)


def _is_folder(out: str) -> bool:
    return out.endswith(_SEPARATORS) or Path(out).is_dir()


def among_images(place: Path, trained_on: Path | None, words: Iterable[str], *, table: bool) -> str | None:
    """Return a note if predictions would lie among images; refuse it if training could take them for its images.

    Args:
        place: where the predictions are to be written.
        trained_on: the user's folder of images that the run was trained on.
        words: the images that are read, as for `predict_inputs.inputs`.
        table: whether a CSV is written, not pictures or shards.
    """
    ours = outputs.folder_around(place, [] if trained_on is None else [trained_on])
    if ours is not None and not table:
        raise RunError(
            f"{place} is inside {ours}, the images that the run was trained on, and could be read as some of them; "
            f"give another --out"
        )
    if ours is not None:
        advice = "move it away if their labels are in a CSV"
        return f"{place} is inside {ours}, the images that the run was trained on; {advice}"
    read = outputs.folder_around(place, [Path(word) for word in words if not tar_places.is_url(word)])
    if read is None or not read.is_dir():
        return None
    again = "" if table else "; repeated, predict would read what it wrote"
    return f"{place} is inside {read}, whose images are read{again}"
