"""Clocks that jump by days while a run trains, and files from the future: nothing depends on them."""

import datetime
import os
import pickle
import random
import re
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dmt.reporting import report_file
from dmt.runs import folder, progress
from tests.torture import children, kills, remains, subjects
from tests.torture.parts import Failure, Outcome, Part, Place, some

NAMES = ("digits", "photos", "masks", "tune")
HOW = ("jumping", "jumping-killed", "future-files", "past-files", "budget")
ETA = re.compile(r"ETA (\S+)")
DAY = 86400.0


class Clocks(Part):
    name = "clocks"
    about = (
        "The clock of the wall jumps by up to 30 days at every look, in one session or between one that was killed and "
        "the next; or all files are from ten years ahead or ago when a run resumes. "
        "Results are the same, every ETA is finite and not negative, and a budget of an hour ends nothing."
    )
    seconds = 3.0

    def prepare(self, base: Path) -> None:
        kills.Kills(NAMES).prepare(base)

    def cases(self, scale: float) -> Sequence[str]:
        every = [f"{name}:{how}" for how in HOW for name in NAMES]
        return every[: some(len(every), scale)]

    def run(self, case: str, at: Place) -> Outcome:
        name, how = case.split(":")
        words = subjects.BY_NAME[name].words(at.base, at.room / "out")
        jump = self._jumping(at.rng.random())
        if how in ("jumping-killed", "future-files", "past-files"):
            self._kill(words, name, jump, at)
        if how.endswith("-files"):
            self._touch(at.room / "out", (10 if how == "future-files" else -10) * 365 * DAY)
        budget = ["--budget", "1h"] if how == "budget" else []
        ended = children.call(children.dmt([*words, *budget], jump), at.room / "clock.log")
        children.succeeded(ended)
        for eta in ETA.findall(ended.said):
            if not re.fullmatch(r"\d+:\d\d(:\d\d)?,?", eta):
                raise Failure(f"a forecast means nothing: ETA {eta}")
        remains.require_same(remains.of(at.room / "out"), pickle.loads((at.base / f"{name}.pickle").read_bytes()))
        return Outcome(f"{name}, {how.replace('-', ' ')}", figures={"ETAs read": float(len(ETA.findall(ended.said)))})

    def _kill(self, words: list[object], name: str, jump: Callable[[], None], at: Place) -> None:
        known = remains.json_of(at.base / f"{name}.json")
        operations = children.Operations(at.room, at.rng.randint(5, int(known["operations"])), children.die)

        def prepare() -> None:
            jump()
            operations.install()

        ended = children.call(children.dmt(words, prepare), at.room / "killed.log")
        if ended.code not in (0, -signal.SIGKILL):
            raise Failure(f"exit code {ended.code}: {ended.said[-1000:]}")

    def _touch(self, out: Path, seconds: float) -> None:
        when = time.time() + seconds
        for path in out.rglob("*"):
            os.utime(path, (when, when))

    def _jumping(self, seed: float) -> Callable[[], None]:
        """Turns the clock of a process for good; lines of progress come at every step."""

        def install() -> None:
            rng, real = random.Random(seed), time.time

            def jumped() -> float:
                return real() + rng.uniform(-30, 30) * DAY

            class Jumping(datetime.datetime):
                @classmethod
                def now(cls, tz: datetime.tzinfo | None = None) -> "Jumping":
                    return cls.fromtimestamp(jumped(), tz)

            time.time = jumped
            time.time_ns = lambda: int(jumped() * 1e9)
            for module in (folder, report_file):
                module.datetime = _Module(Jumping)  # type: ignore[attr-defined]
            lines = progress.Lines.__init__
            progress.Lines.__init__ = lambda self, stream, every=0.0: lines(self, stream, 0.0)  # type: ignore[method-assign]

        return install


class _Module:
    """The module of dates with another clock."""

    def __init__(self, jumping: Any) -> None:
        self.datetime, self.UTC = jumping, datetime.UTC
