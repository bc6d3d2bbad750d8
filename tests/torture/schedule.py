"""Cases spread over processes: each part and each handful of cases in a fork of its own, and what came of them."""

import json
import os
import random
import shlex
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dmt.runs.progress import duration
from tests.torture.parts import Failure, Outcome, Part, Place

CHUNK = 15.0
"""Seconds that a fork works, roughly: long enough to cost nothing, short enough for an ETA."""

PATIENCE = 900.0
"""Seconds without news after which a fork hangs."""

EVERY = 5.0
"""Seconds between two lines of progress."""


@dataclass(frozen=True)
class Found:
    """What came of a case; ``failure`` is None if it went well."""

    part: str
    case: str
    kind: str
    count: int
    figures: dict[str, float]
    failure: str | None
    seconds: float


def conduct(part: Part, case: str, base: Path, room: Path, seed: int) -> Found:
    """One case in this process."""
    began = time.monotonic()
    room.mkdir(parents=True)
    outcome: Outcome = Outcome("failed", 0)
    failure: str | None = None
    try:
        outcome = part.run(case, Place(base, room, random.Random(f"{seed} {part.name} {case}")))
    except (Failure, AssertionError) as error:
        failure = str(error) or traceback.format_exc()
    except Exception:
        failure = traceback.format_exc()
    shutil.rmtree(room, ignore_errors=True)
    spent = time.monotonic() - began
    failure = None if failure is None else failure.replace(str(room), "ROOM").replace(str(base), "BASE")
    return Found(part.name, case, outcome.kind, outcome.count, dict(outcome.figures), failure, spent)


@dataclass
class _Fork:
    """A process at work on some cases of a part; without any, it prepares the part."""

    part: Part
    cases: list[str]
    process: int
    news: Path
    read: int = 0
    heard: float = 0.0


class Schedule:
    """Works through all cases of some parts."""

    def __init__(self, work: Path, seed: int, at_once: int) -> None:
        self._work, self._seed, self._at_once = work, seed, at_once
        self._started, self.found = 0, list[Found]()
        self._broken: set[Part] = set()

    def run(self, plan: dict[Part, Sequence[str]]) -> list[Found]:
        """Returns what came of every case, and says how far it is."""
        began = said = time.monotonic()
        waiting = {part: list(cases) for part, cases in plan.items()}
        total = {part: len(cases) for part, cases in plan.items()}
        ready: set[Part] = set()
        forks: list[_Fork] = []
        unprepared = list(plan)
        while any(waiting.values()) or forks:
            while len(forks) < self._at_once and (fork := self._next(unprepared, ready, waiting)) is not None:
                forks.append(fork)
            time.sleep(0.02)
            for fork in list(forks):
                self._listen(fork)
                if self._over(fork):
                    forks.remove(fork)
                    ready.add(fork.part)
                    if fork.part in self._broken:
                        waiting[fork.part] = []
            if time.monotonic() - said > EVERY:
                said = time.monotonic()
                self._say(said - began, total)
        self._say(time.monotonic() - began, total)
        return self.found

    def _next(self, unprepared: list[Part], ready: set[Part], waiting: dict[Part, list[str]]) -> _Fork | None:
        """Long cases first, then the part with most left to do; parts are prepared before."""
        if unprepared:
            return self._fork(unprepared.pop(0), [])
        open_ = [part for part in waiting if part in ready and waiting[part]]
        if not open_:
            return None
        part = max(open_, key=lambda each: (self._pace(each) > CHUNK, len(waiting[each]) * self._pace(each)))
        count = max(1, round(CHUNK / self._pace(part)))
        cases, waiting[part] = waiting[part][:count], waiting[part][count:]
        return self._fork(part, cases)

    def _fork(self, part: Part, cases: list[str]) -> _Fork:
        self._started += 1
        news = self._work / f"news-{self._started}"
        news.touch()
        sys.stdout.flush()
        process = os.fork()
        if not process:
            try:
                self._cases(part, cases, news)
            except BaseException as error:
                _tell(news, {"broken": f"{error}\n{traceback.format_exc()}"})
            finally:
                os._exit(0)
        return _Fork(part, cases, process, news, heard=time.monotonic())

    def _cases(self, part: Part, cases: list[str], news: Path) -> None:
        os.fsync = lambda fd: None  # what is flushed outlives a killed process anyway
        base = self._work / part.name
        if not cases:
            base.mkdir()
            part.prepare(base)
            return
        for number, case in enumerate(cases):
            found = conduct(part, case, base, self._work / f"{news.name}-{number}", self._seed)
            _tell(news, asdict(found))

    def _listen(self, fork: _Fork) -> None:
        for told in _lines(fork):
            fork.heard = time.monotonic()
            if "broken" in told:
                self._broken.add(fork.part)
                self._fail(fork.part, fork.cases[0] if fork.cases else "preparation", told["broken"])
                fork.cases = fork.cases[1:]
            else:
                found = Found(**told)
                self.found.append(found)
                fork.cases.remove(found.case)
                if found.failure is not None:
                    self._report(found)

    def _over(self, fork: _Fork) -> bool:
        ended, _ = os.waitpid(fork.process, os.WNOHANG)
        if not ended and time.monotonic() - fork.heard > PATIENCE:
            os.kill(fork.process, signal.SIGKILL)
            os.waitpid(fork.process, 0)
            ended = fork.process
        if ended:
            self._listen(fork)
            for case in fork.cases[:1]:  # it was at this one
                self._fail(fork.part, case, "the process hangs or was killed by the system")
        return bool(ended)

    def _fail(self, part: Part, case: str, failure: str) -> None:
        found = Found(part.name, case, "failed", 0, {}, failure, 0.0)
        self.found.append(found)
        self._report(found)

    def _report(self, found: Found) -> None:
        print(f"FAILED {found.part} {found.case}: {found.failure}", flush=True)
        print(f"  repeat it: {repeat(found, self._seed)}", flush=True)

    def _pace(self, part: Part) -> float:
        """Seconds of a case."""
        spent = [each.seconds for each in self.found if each.part == part.name][-50:]
        return max(1e-3, sum(spent) / len(spent)) if spent else part.seconds

    def _say(self, spent: float, total: dict[Part, int]) -> None:
        done = {part: sum(each.part == part.name for each in self.found) for part in total}
        left = sum((total[part] - done[part]) * self._pace(part) for part in total) / self._at_once
        parts = ", ".join(f"{part.name} {done[part]}/{total[part]}" for part in total)
        failed = sum(each.failure is not None for each in self.found)
        print(f"{duration(spent)}: {parts}; {failed} failed, ETA {duration(max(0.0, left))}", flush=True)


def repeat(found: Found, seed: int) -> str:
    """The command that repeats a case."""
    return f"python -m tests.torture --seed {seed} --only {found.part} --case {shlex.quote(found.case)}"


def _tell(news: Path, value: dict[str, Any]) -> None:
    with news.open("a") as file:
        file.write(json.dumps(value) + "\n")


def _lines(fork: _Fork) -> Iterator[dict[str, Any]]:
    lines = fork.news.read_text().split("\n")[:-1]
    for line in lines[fork.read :]:
        fork.read += 1
        yield json.loads(line)
