import threading
import time
from collections.abc import Callable

import pytest

from dmt.pseudo.background import Behind


def test_what_went_wrong_is_raised_once_where_somebody_waits() -> None:
    def fail(given_up: Callable[[], bool]) -> None:
        raise OSError("no space left")

    behind = Behind(fail)
    with pytest.raises(OSError, match="no space"):
        behind.wait()
    behind.wait()
    assert not behind.busy


def test_it_can_be_given_up() -> None:
    ended = threading.Event()

    def work(given_up: Callable[[], bool]) -> None:
        while not given_up():
            time.sleep(0.001)
        ended.set()
        raise OSError("nobody cares any more")

    behind = Behind(work)
    assert behind.busy
    behind.give_up()
    assert ended.is_set()
    behind.wait()


def test_whoever_is_interrupted_while_waiting_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(given_up: Callable[[], bool]) -> None:
        while not given_up():
            time.sleep(0.001)

    behind = Behind(work)
    join = behind._thread.join
    calls = []

    def interrupted() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        join()

    monkeypatch.setattr(behind._thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        behind.wait()
    assert not behind.busy
