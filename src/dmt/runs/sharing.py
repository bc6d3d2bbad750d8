"""Reuse of finished stages of other runs: stages of equal identity have equal nets."""

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from dmt import files, run_files
from dmt.runs.folder import Folder

UNREADY = ".taking-"
"""Prefix of the names of stage folders that are still being copied."""


def take(folder: Folder, places: Sequence[str], donors: Iterable[Path]) -> list[str]:
    """Copy finished stages from donor runs into a run that needs them.

    Args:
        folder: the run, locked by this process. Stages that it has begun are left alone.
        places: names of the folders of the stages it needs; a name contains the stage's identity.
        donors: run folders to take stages from.

    Returns:
        The names of the folders that were copied.
    """
    root = folder.path / run_files.STAGES
    for left in root.glob(f"{UNREADY}*"):  # left by a process that was killed
        shutil.rmtree(left)
    taken = []
    for donor in map(Folder, donors):
        for place in places:
            if not folder.stage(place).exists() and donor.finished(place):
                _link(donor.stage(place), folder.stage(place))
                taken.append(place)
    return taken


def _link(source: Path, target: Path) -> None:
    """Copy a stage folder atomically, with hard links instead of copies of large files where the disk supports them."""
    unready = files.make_folder(target.parent, UNREADY)
    shutil.copytree(source, unready, copy_function=_file, dirs_exist_ok=True)
    unready.rename(target)


def _file(source: str, target: str) -> None:
    """Link or copy one file. Files that may be appended to are copied, so that one run does not change the other."""
    if not source.endswith((".jsonl", ".json")):
        try:
            os.link(source, target)
            return
        except OSError:  # another disk, or no support for hard links
            pass
    shutil.copy2(source, target)
