"""Disks without room or without inodes: one line, and once there is room the same command comes to the same end."""

import errno
import os
import pickle
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.torture import children, kills, remains, subjects
from tests.torture.children import Operations
from tests.torture.parts import Failure, Outcome, Part, Place, some

SIZES, INODES = 20, 5
NAMES = ("digits", "masks", "photos", "audit", "pack", "report")
ROOM = "size=64m,nr_inodes=100000"
MAKING = ("open", "fsync", "mkdir", "link")
"""Operations that need room."""


class FullDisks(Part):
    name = "full-disks"
    about = (
        "A command writes to a disk that is too small for it, or has too few inodes: a tmpfs where mounting is "
        "allowed, else every operation that needs room fails from one on that is drawn. It ends with one line that "
        "says so. Then room is made, and the same command ends like an undisturbed one."
    )
    seconds = 3.0

    def prepare(self, base: Path) -> None:
        kills.Kills(NAMES).prepare(base)
        sizes = {name: sum(_size(path) for path in (base / f"{name}-room/out").rglob("*")) for name in NAMES}
        (base / "sizes.pickle").write_bytes(pickle.dumps(sizes))

    def cases(self, scale: float) -> Sequence[str]:
        sizes = [f"{NAMES[number % len(NAMES)]}-size-{number}" for number in range(some(SIZES, scale))]
        return sizes + [f"{NAMES[number % len(NAMES)]}-inodes-{number}" for number in range(some(INODES, scale))]

    def run(self, case: str, at: Place) -> Outcome:
        name, what, number = case.split("-")
        sizes = pickle.loads((at.base / "sizes.pickle").read_bytes())
        disk, log = at.room / "disk", at.room / "full.log"
        words = subjects.BY_NAME[name].words(at.base, disk / "out")
        disk.mkdir()
        files = len(list((at.base / f"{name}-room/out").rglob("*")))
        share = (int(number) + 0.5) / (SIZES if what == "size" else INODES)
        limit = (
            f"size={max(4096, int(share * sizes[name]))}" if what == "size" else f"nr_inodes={2 + int(share * files)}"
        )
        mounted = _mount(disk, limit)
        try:
            full = _full if mounted else self._injected(at, name, disk)
            ended = children.call(children.dmt(words, full), log)
            if ended.code not in (0, 2):
                raise Failure(f"exit code {ended.code} on a full disk: {ended.said[-2000:]}")
            if ended.code == 2 and "full" not in ended.said:
                raise Failure(f"a full disk is not called so: {ended.said[-500:]}")
            if mounted:
                _grow(disk)
            kills.resume(words, at.room)
            known = pickle.loads((at.base / f"{name}.pickle").read_bytes())
            remains.require_same(remains.of(disk / "out"), known)
        finally:
            if mounted:
                subprocess.run(["umount", "-l", disk], check=True)
        lacking = "room" if what == "size" else "inodes"
        if not mounted:
            lacking += " (injected)"
        return Outcome(f"{name}, too little {lacking}, {'refused' if ended.code else 'enough after all'}")

    def _injected(self, at: Place, name: str, disk: Path) -> Any:
        def fail(kind: str, subject: Any) -> None:
            if kind in MAKING:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        return Operations(disk, at.rng.randint(1, 100), fail).install


def _full() -> None:
    """Nothing is patched: the disk is really full."""


def _size(path: Path) -> int:
    return -(-path.stat().st_size // 4096) * 4096 if path.is_file() else 0


def _mount(disk: Path, limit: str) -> bool:
    """Whether a disk with so little room could be mounted."""
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", limit, "tmpfs", disk], capture_output=True, check=False)
    return done.returncode == 0


def _grow(disk: Path) -> None:
    subprocess.run(["mount", "-o", f"remount,{ROOM}", disk], check=True)
