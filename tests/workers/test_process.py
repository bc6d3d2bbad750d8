"""A process that carries out orders, as far as it can be seen without one."""

import io
import pickle
import sys
from queue import SimpleQueue
from types import ModuleType, SimpleNamespace

import pytest

from dmt.runs.stopping import Stop
from dmt.workers import process
from dmt.workers.messages import Order

ORDERS = [["an order"], ["another"]]


def heard(content: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[list[object], Stop]:
    """What a worker hears of a pipe that then ends."""
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    inbox, stop = SimpleQueue[Order | None](), Stop()
    process._listen(inbox, stop)
    return [inbox.get() for _ in range(inbox.qsize())], stop


def test_a_worker_whose_session_is_gone_stops_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    orders, stop = heard(b"".join(map(pickle.dumps, ORDERS)), monkeypatch)
    assert orders == [*ORDERS, None]
    assert stop.asked


def test_an_order_that_was_cut_short_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    content = pickle.dumps(ORDERS[0]) + pickle.dumps(ORDERS[1])[:-5]
    assert heard(content, monkeypatch)[0] == [ORDERS[0], None]


def test_a_reason_to_stop_is_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    assert heard(pickle.dumps(1), monkeypatch)[0] == [None]


def test_what_cannot_be_loaded_here_ends_the_listening(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the listening thread would die, and whoever waits for its messages would wait forever."""
    missing = ModuleType("missing_here")
    missing.Odd = type("Odd", (), {"__module__": missing.__name__})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, missing.__name__, missing)
    content = pickle.dumps(ORDERS[0]) + pickle.dumps(missing.Odd())
    monkeypatch.delitem(sys.modules, missing.__name__)
    orders, stop = heard(content, monkeypatch)
    assert orders == [ORDERS[0], None]
    assert stop.asked
