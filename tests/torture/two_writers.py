"""Two processes in one folder: one works, the other is refused in one line, and the result is intact."""

import os
import pickle
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.torture import children, kills, remains, subjects
from tests.torture.children import Operations
from tests.torture.parts import Failure, Outcome, Part, Place, some

NAMES = ("digits", "masks", "tune", "audit")
BESIDE = ("same", "pack", "audit", "report", "score", "race")
REFUSED = "in use by another process"


class TwoWriters(Part):
    name = "two-writers"
    about = (
        "A process is held in the middle of its work; another one starts the same command in the same folder, or "
        "packs, audits, scores or reports the run. Who would write is refused in one line; who only reads may go on. "
        "The first one then ends like an undisturbed one. In a race both start at once, and the folder ends whole."
    )
    seconds = 4.0

    def prepare(self, base: Path) -> None:
        kills.Kills(NAMES).prepare(base)

    def cases(self, scale: float) -> Sequence[str]:
        every = [f"{name}-{what}" for what in BESIDE for name in NAMES if what in ("same", "race") or name == "digits"]
        every += [f"{name}-race-again" for name in NAMES]
        return every[: some(len(every), scale)]

    def run(self, case: str, at: Place) -> Outcome:
        name, what = case.split("-")[:2]
        out = at.room / "out"
        words = subjects.BY_NAME[name].words(at.base, out)
        said = self._race(words, at) if what == "race" else self._beside(words, self._other(what, words, at), name, at)
        remains.require_same(remains.of(out), pickle.loads((at.base / f"{name}.pickle").read_bytes()))
        return Outcome(f"{name}, beside it {'the same, at once' if what == 'race' else what}: {said}")

    def _other(self, what: str, words: list[object], at: Place) -> list[object]:
        out = at.room / "out"
        return {
            "same": words,
            "pack": ["pack", out, "--out", at.room / "packed"],
            "audit": ["audit", out, "--out", at.room / "audited", "--folds", 2],
            "report": ["report", out],
            "score": ["score", out, "--device", "cpu"],
        }[what]

    def _beside(self, words: list[object], other: list[object], name: str, at: Place) -> str:
        """Start the other one while the first is held."""
        held = at.room / "held"
        at_once = 60 if name == "digits" else 12

        def hold(kind: str, subject: Any) -> None:
            if not held.exists():
                held.touch()
                os.kill(os.getpid(), signal.SIGSTOP)

        first_log, second_log = at.room / "first.log", at.room / "second.log"
        first = children.start(children.dmt(words, Operations(at.room / "out", at_once, hold).install), first_log)
        try:
            _until(held)
            second = children.call(children.dmt(other), second_log)
        finally:
            os.kill(first, signal.SIGCONT)
        children.succeeded(children.wait(first, first_log))
        if second.code not in (0, 2) or (other is words and REFUSED not in second.said):
            raise Failure(f"the second process ended with {second.code}: {second.said[-1000:]}")
        return "refused" if second.code else "read"

    def _race(self, words: list[object], at: Place) -> str:
        """Both at once."""
        logs = [at.room / "first.log", at.room / "second.log"]
        processes = [children.start(children.dmt(words), log) for log in logs]
        ended = [children.wait(process, log) for process, log in zip(processes, logs, strict=True)]
        for each in ended:
            if each.code not in (0, 2) or (each.code == 2 and REFUSED not in each.said):
                raise Failure(f"one of two ended with {each.code}: {each.said[-1000:]}")
        if all(each.code for each in ended):
            raise Failure("each of two refused because of the other")
        return "one refused" if any(each.code for each in ended) else "one after the other"


def _until(held: Path) -> None:
    end = time.monotonic() + children.LIMIT
    while not held.exists():
        if time.monotonic() > end:
            raise Failure("the first process did not come to its middle")
        time.sleep(0.01)
    time.sleep(0.05)
