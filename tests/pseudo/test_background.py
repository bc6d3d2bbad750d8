import threading
import time
from collections.abc import Callable

import pytest

from dmt.pseudo.background import BackgroundWork


def test_what_went_wrong_is_raised_once_where_somebody_waits() -> None:
    def fail(canceled: Callable[[], bool]) -> None:
        raise OSError("no space left")

    background = BackgroundWork(fail)
    with pytest.raises(OSError, match="no space"):
        background.wait()
    background.wait()
    assert not background.busy


def test_it_can_be_canceled() -> None:
    ended = threading.Event()

    def work(canceled: Callable[[], bool]) -> None:
        while not canceled():
            time.sleep(0.001)
        ended.set()
        raise OSError("nobody cares any more")

    background = BackgroundWork(work)
    assert background.busy
    background.cancel()
    assert ended.is_set()
    background.wait()


def test_whoever_is_interrupted_while_waiting_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(canceled: Callable[[], bool]) -> None:
        while not canceled():
            time.sleep(0.001)

    background = BackgroundWork(work)
    join = background._thread.join
    calls = []

    def interrupted() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        join()

    monkeypatch.setattr(background._thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        background.wait()
    assert not background.busy
