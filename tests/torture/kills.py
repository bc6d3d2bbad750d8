"""Processes killed at file operations and at moments, resumed by the same command, compared bit for bit."""

import json
import pickle
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path

from dmt import files
from tests.torture import children, remains, subjects
from tests.torture.children import Operations
from tests.torture.parts import Failure, Outcome, Part, Place, some

EACH = 16
"""Cases of every subject."""

TRIES = 10
"""Times that a process is started to be killed: one that is nearly done may end before."""

SOON = 0.1
"""Seconds after an operation in which a moment lies; half of it whenever that was too late."""

HOW = ("operation", "operation", "torn", "moment")
"""Ways to kill, in turn."""


class Kills(Part):
    name = "kills"
    about = (
        "Processes get SIGKILL before an operation on files that is drawn (every fourth time what was being flushed is "
        "cut short, too) or a moment after one; some of those that resume are killed again. "
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
        killed, wanted = 0, 2 if at.rng.random() < 0.3 and name != "pack" else 1
        for trial in range(TRIES):
            killed += self._kill(words, how, known, at, SOON / 2**trial)
            if killed == wanted:
                break
            if not killed:  # it came to its end: begin anew
                shutil.rmtree(at.room / "out", ignore_errors=True)
        if not killed:
            raise Failure("it was never killed")
        known_files = pickle.loads((at.base / f"{name}.pickle").read_bytes())
        if name != "pack" or remains.differences(remains.of(at.room / "out"), known_files):
            resume(words, at.room)  # a complete pack is not made again
        found = remains.of(at.room / "out")
        if name == "report":  # it is written into a user's folder, in which nobody sweeps
            found = {path: each for path, each in found.items() if not path.startswith(files.TEMPORARY)}
        remains.require_same(found, known_files)
        return Outcome(f"{name}, killed at {'a moment' if how == 'moment' else 'a file operation'}", killed)

    def _kill(self, words: list[object], how: str, known: dict[str, int], at: Place, soon: float) -> int:
        """Returns whether it was killed: a moment may come too late."""
        log, number = at.room / "killed.log", at.rng.randint(1, known["operations"])
        act = {"torn": children.die_torn, "moment": children.die_after(at.rng.uniform(0.0, soon))}.get(
            how, children.die
        )
        ended = children.call(children.dmt(words, Operations(at.room, number, act).install), log)
        if ended.code not in (0, -signal.SIGKILL):
            raise Failure(f"exit code {ended.code} before it was killed: {ended.said[-2000:]}")
        return int(ended.code != 0)


def reference(base: Path, name: str) -> None:
    """Run a command undisturbed, and write down what came out and how many operations on files it took."""
    room = base / f"{name}-room"
    room.mkdir()
    operations, words = Operations(room), subjects.BY_NAME[name].words(base, room / "out")
    counted = room / "operations"

    def work() -> int:
        code = children.dmt(words, operations.install)()
        counted.write_text(str(operations.done))
        return code

    children.succeeded(children.call(work, room / "whole.log"))
    (base / f"{name}.json").write_text(json.dumps({"operations": int(counted.read_text()) - 1}))
    (base / f"{name}.pickle").write_bytes(pickle.dumps(remains.of(room / "out")))


def resume(words: list[object], room: Path) -> None:
    """Repeat a command; it must go well."""
    children.succeeded(children.call(children.dmt(words, Operations(room).install), room / "again.log"))
