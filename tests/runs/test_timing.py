"""Measured times, on a clock of our own."""

from collections.abc import Iterable, Iterator
from itertools import cycle

import pytest
import torch

from dmt.runs import timing

CPU = torch.device("cpu")


class Clock:
    """Time passes by doing things."""

    def __init__(self, waits: Iterable[float]) -> None:
        self.now, self.done = 0.0, 0
        self._waits: Iterator[float] = iter(waits)

    def act(self) -> None:
        self.now += next(self._waits)
        self.done += 1


def measured(clock: Clock, patience: float, patch: pytest.MonkeyPatch) -> float:
    patch.setattr(timing, "now", lambda device: clock.now)
    return timing.seconds(clock.act, CPU, patience)


def test_the_mean_of_what_was_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock([0.03, 0.01, 0.0])
    assert measured(clock, 0.035, monkeypatch) == pytest.approx(0.02)
    assert clock.done == 2


@pytest.mark.parametrize("patience", [0.0, 0.01])
def test_something_slow_is_done_once(patience: float, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock([0.02])
    assert measured(clock, patience, monkeypatch) == pytest.approx(0.02)


def test_repeating_ends_when_it_tells_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    steady, unsteady, quick = Clock(cycle([0.1])), Clock(cycle([0.05, 0.15])), Clock(cycle([0.001]))
    assert measured(steady, 2.0, monkeypatch) == pytest.approx(0.1)
    assert steady.done == timing.ENOUGH
    assert measured(unsteady, 1.99, monkeypatch) == pytest.approx(0.1)
    assert unsteady.done == 20  # to the end
    assert measured(quick, 2.0, monkeypatch) == pytest.approx(0.001)
    assert quick.now == pytest.approx(0.5, abs=0.01)  # a device needs a moment to get going


def test_a_host_without_cuda_has_a_clock() -> None:
    assert timing.now(CPU) <= timing.now(CPU)
