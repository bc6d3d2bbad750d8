"""What a person sees of several workers."""

import io

import pytest
from rich.console import Console

from dmt.runs.progress import Bars, Lines, Silent
from dmt.workers.messages import Said
from dmt.workers.several import SeveralAtOnce


class Adding(Silent):
    """Adds up work as a bar would."""

    def __init__(self) -> None:
        self.done, self._steps, self._work = 0.0, 0, 0.0
        self.titles: list[str] = []

    def stage(self, title: str, steps: int, done: int, work: float) -> None:
        self._steps, self._work = done, work
        self.titles.append(title)

    def step(self, done: int) -> None:
        self.done += (done - self._steps) * self._work
        self._steps = done

    def worked(self, work: float) -> None:
        self.done += work


def stage(title: str, done: int = 0, work: float = 2.0) -> Said:
    return Said("stage", (title, 10, done, work))


def step(done: int) -> Said:
    return Said("step", (done,))


def test_steps_of_two_stages_add_up() -> None:
    watcher = Adding()
    both = SeveralAtOnce(watcher)
    both.hear(0, stage("A0"))
    both.hear(1, stage("B0", work=3.0))
    for done in (4, 10):
        both.hear(0, step(done))
        both.hear(1, step(done))
    assert watcher.done == 10 * 2.0 + 10 * 3.0


def test_steps_that_were_lost_are_not_counted_twice() -> None:
    watcher = Adding()
    both = SeveralAtOnce(watcher)
    both.hear(0, stage("A0"))
    both.hear(0, step(8))
    both.lost(0)
    both.hear(1, stage("A0", done=5))
    both.hear(1, step(10))
    assert watcher.done == pytest.approx(10 * 2.0)


def test_lines_name_the_stage_whose_step_it_is() -> None:
    log = io.StringIO()
    both = SeveralAtOnce(Lines(log, every=0.0))
    both.hear(0, Said("begin", (40.0, 0.0)))
    both.hear(0, stage("A0"))
    both.hear(1, stage("B0"))
    both.hear(0, step(3))
    both.hear(1, Said("busy", ("labels for B1", 1, 9)))
    both.hear(0, step(5))
    said = log.getvalue().splitlines()
    assert said[0].startswith("A0: step 3/10, whole run 15%")
    assert said[1].startswith("labels for B1: 1 of 9")
    assert said[2].startswith("A0: step 5/10, whole run 25%")


def test_every_worker_has_a_bar() -> None:
    screen = io.StringIO()
    with Bars(Console(file=screen, force_terminal=True, width=100)) as bars:
        both = SeveralAtOnce(bars)
        both.hear(0, Said("begin", (40.0, 0.0)))
        both.hear(0, stage("stage A0"))
        both.hear(1, stage("stage B0"))
        both.hear(0, step(5))
        both.hear(1, step(10))
    last = screen.getvalue().split("whole run")[-1]
    assert "75 %" in last.split("stage A0")[0]
    assert "50 %" in last.split("stage A0")[1].split("stage B0")[0]
    assert "100 %" in last.split("stage B0")[1]
