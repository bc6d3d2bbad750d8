"""Stages that another run has trained already. Equal identity means an equal net, so nobody trains it twice."""

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from dmt import files, run_files
from dmt.runs.folder import Folder

UNREADY = ".taking-"
"""How the names of stage folders begin that are not complete yet."""


def take(folder: Folder, places: Sequence[str], donors: Iterable[Path]) -> list[str]:
    """Bring finished stages of the donors into a run that needs them; returns the places that came.

    Args:
        folder: the run, claimed by this process.
        places: the stages it will train, by the name of their folder, which tells their identity.
        donors: run folders to take from. A stage that began here continues here.
    """
    root = folder.path / run_files.STAGES
    for left in root.glob(f"{UNREADY}*"):  # by a process that was killed
        shutil.rmtree(left)
    taken = []
    for donor in map(Folder, donors):
        for place in places:
            if not folder.stage(place).exists() and donor.finished(place):
                _link(donor.stage(place), folder.stage(place))
                taken.append(place)
    return taken


def _link(source: Path, target: Path) -> None:
    """A folder that is complete from the moment it is there, and takes no room where the disk can link."""
    unready = files.make_folder(target.parent, UNREADY)
    shutil.copytree(source, unready, copy_function=_file, dirs_exist_ok=True)
    unready.rename(target)


def _file(source: str, target: str) -> None:
    """One file. What is written to in place must be one's own: a line for one run is not a line for the other."""
    if not source.endswith((".jsonl", ".json")):
        try:
            os.link(source, target)
            return
        except OSError:  # another disk, or one that cannot link
            pass
    shutil.copy2(source, target)
