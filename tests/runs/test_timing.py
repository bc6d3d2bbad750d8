"""Measured times."""

import time

import pytest
import torch

from dmt.runs import timing

CPU = torch.device("cpu")


def test_the_mean_of_what_was_repeated() -> None:
    waits = iter([0.03, 0.01, 0.0])
    found = timing.seconds(lambda: time.sleep(next(waits)), CPU, patience=0.035)
    assert 0.02 <= found < 0.2


@pytest.mark.parametrize("patience", [0.0, 0.01])
def test_something_slow_is_repeated_all_the_same(patience: float) -> None:
    done: list[int] = []

    def slow() -> None:
        time.sleep(0.02)
        done.append(1)

    timing.seconds(slow, CPU, patience)
    assert len(done) == timing.LEAST
