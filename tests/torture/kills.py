"""Processes killed at file operations and at moments, resumed by the same command, compared bit for bit."""

import json
import os
import pickle
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from dmt import files
from tests.torture import children, remains, subjects
from tests.torture.children import Operations
from tests.torture.parts import Failure, Outcome, Part, Place, some

EACH = 16
"""Cases of every subject."""

HOW = ("operation", "operation", "torn", "moment")
"""Ways to kill, in turn."""


class Kills(Part):
    name = "kills"
    about = (
        "Processes get SIGKILL before an operation on files that is drawn (every fourth time what was being flushed is "
        "cut short, too) or at a moment that is drawn; some of those that resume are killed again. "
        "The same command then ends with exit code 0, and every file equals that of an undisturbed run, clocks left "
        "out; a page that was being written may leave a hidden .dmt-tmp- file beside it."
    )
    seconds = 1.5

    def __init__(self, names: Sequence[str] = tuple(subjects.BY_NAME)) -> None:
        self._names = names

    def prepare(self, base: Path) -> None:
        subjects.make_inputs(base)
        if set(self._names) & subjects.READING:
            run = subjects.BY_NAME["digits"].words(base, base / subjects.RUN)
            children.succeeded(children.call(children.dmt(run), base / "run.log"))
        for name in self._names:
            reference(base, name)

    def cases(self, scale: float) -> list[str]:
        count = some(EACH, scale)
        return [f"{name}-{HOW[number % len(HOW)]}-{number}" for number in range(count) for name in self._names]

    def run(self, case: str, at: Place) -> Outcome:
        name, how, _ = case.split("-")
        known = json.loads((at.base / f"{name}.json").read_text())
        words = subjects.BY_NAME[name].words(at.base, at.room / "out")
        killed = 0
        for _ in range(2 if at.rng.random() < 0.3 and name != "pack" else 1):
            killed += self._kill(words, how, known, at)
        known_files = pickle.loads((at.base / f"{name}.pickle").read_bytes())
        if name != "pack" or remains.differences(remains.of(at.room / "out"), known_files):
            resume(words, at.room)  # a complete pack is not made again
        found = remains.of(at.room / "out")
        if name == "report":  # it is written into a user's folder, in which nobody sweeps
            found = {path: each for path, each in found.items() if not path.startswith(files.TEMPORARY)}
        remains.require_same(found, known_files)
        return Outcome(f"{name}, killed at {'a moment' if how == 'moment' else 'a file operation'}", killed)

    def _kill(self, words: list[object], how: str, known: dict[str, float], at: Place) -> int:
        log = at.room / "killed.log"
        if how == "moment":
            process = children.start(children.dmt(words, Operations(at.room).install), log)
            time.sleep(at.rng.uniform(0.0, 0.9) * known["seconds"])
            os.kill(process, signal.SIGKILL)
        else:
            act = children.die_torn if how == "torn" else children.die
            operations = Operations(at.room, at.rng.randint(1, int(known["operations"])), act)
            process = children.start(children.dmt(words, operations.install), log)
        ended = children.wait(process, log)
        if ended.code not in (0, -signal.SIGKILL):
            raise Failure(f"exit code {ended.code} before it was killed: {ended.said[-2000:]}")
        return int(ended.code != 0)


def reference(base: Path, name: str) -> None:
    """Run a command undisturbed, and write down what came out, how long it took, and its operations on files."""
    room = base / f"{name}-room"
    room.mkdir()
    operations, words = Operations(room), subjects.BY_NAME[name].words(base, room / "out")
    counted = room / "operations"

    def work() -> int:
        code = children.dmt(words, operations.install)()
        counted.write_text(str(operations.done))
        return code

    began = time.monotonic()
    children.succeeded(children.call(work, room / "whole.log"))
    known = {"seconds": time.monotonic() - began, "operations": int(counted.read_text()) - 1}
    (base / f"{name}.json").write_text(json.dumps(known))
    (base / f"{name}.pickle").write_bytes(pickle.dumps(remains.of(room / "out")))


def resume(words: list[object], room: Path) -> None:
    """Repeat a command; it must go well."""
    children.succeeded(children.call(children.dmt(words, Operations(room).install), room / "again.log"))
