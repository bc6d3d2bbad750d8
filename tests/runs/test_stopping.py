import os
import signal

import pytest

from dmt.errors import ConfigError
from dmt.runs import stopping


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90", 90), ("90s", 90), ("9m", 540), ("1h30m", 5400), ("2h", 7200), ("0.5", 0.5), ("9m30s", 570)],
)
def test_budgets(text: str, expected: float) -> None:
    assert stopping.seconds(text) == expected


@pytest.mark.parametrize("text", ["", "soon", "9x", "-3", "0s", "1h30", "9m30", "h"])
def test_budgets_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError, match="budget"):
        stopping.seconds(text)


def test_first_signal_asks_and_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    stop = stopping.Stop()
    with stop.on_signals():
        assert not stop()
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop()
        assert signal.getsignal(signal.SIGTERM) is before  # a second one acts as usual
    assert signal.getsignal(signal.SIGTERM) is before
    assert stop.error().code == 143
