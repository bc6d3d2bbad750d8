"""Orders and workers, with threads for processes: who gets what, and what is done about those that are gone."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

import pytest

from dmt.errors import ConfigError, DivergenceError, RunError
from dmt.runs.progress import Silent
from dmt.runs.stopping import Stop, Stopped
from dmt.workers import serving
from dmt.workers.messages import Here, Lost, Order
from dmt.workers.pool import Inbox, Worker
from dmt.workers.scheduler import ATTEMPTS, Agenda, Scheduler


class GoneError(BaseException):
    """Ends a thread as a signal ends a process."""


class Thread(Worker):
    """A worker in this process."""

    def __init__(self, number: int, inbox: Inbox) -> None:
        super().__init__(number)
        self._orders, self._stop, self._inbox = SimpleQueue[Order | None](), Stop(), inbox
        threading.Thread(target=self._live, daemon=True).start()

    def _live(self) -> None:
        try:
            serving.serve(self.number, self._orders, lambda message: self._inbox.put((self, message)), self._stop)
        except GoneError:
            self._inbox.put((self, Lost()))

    def hand(self, order: Order) -> None:
        self._orders.put(order)

    def stop(self, reason: int) -> None:
        self._stop.adopt(reason)

    def end(self) -> None:
        self._orders.put(None)

    def kill(self) -> None:
        self.end()


@dataclass(frozen=True)
class Act(Order):
    name: str
    act: Callable[[Here], Any]

    @property
    def title(self) -> str:
        return self.name

    def carry_out(self, here: Here) -> Any:
        return self.act(here)


class Listed(Agenda):
    """Orders, each after those that it names."""

    def __init__(self, *orders: Order, after: dict[str, set[str]] | None = None) -> None:
        self._waiting, self._after = list(orders), after or {}
        self.results: dict[str, Any] = {}

    def ready(self) -> Sequence[Order]:
        return [order for order in self._waiting if self._after.get(order.title, set()) <= self.results.keys()]

    def begin(self, order: Order) -> None:
        self._waiting.remove(order)

    def done(self, order: Order, result: Any) -> None:
        self.results[order.title] = result

    def put_back(self, order: Order) -> None:
        self._waiting.append(order)


class Notes(Silent):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def run(agenda: Agenda, count: int = 2, stop: Stop | None = None) -> list[str]:
    watcher = Notes()
    Scheduler(Thread, count, watcher, stop or Stop(), lambda number, environment: None).run(agenda)
    return watcher.notes


def test_two_at_once_each_after_what_it_waits_for() -> None:
    both = threading.Barrier(2, timeout=60)  # neither could pass it alone
    began: list[str] = []

    def meet(name: str) -> Act:
        def act(here: Here) -> str:
            began.append(name)
            both.wait()
            return name

        return Act(name, act)

    agenda = Listed(*map(meet, ("A0", "B0", "A1", "B1")), after={"A1": {"A0", "B0"}, "B1": {"A0", "B0"}})
    run(agenda)
    assert agenda.results == {name: name for name in ("A0", "B0", "A1", "B1")}
    assert {*began[:2]} == {"A0", "B0"}


def test_no_more_workers_than_there_is_work() -> None:
    numbers: set[int] = set()
    chain = [Act(f"A{n}", lambda here: numbers.add(here.number)) for n in range(4)]
    run(Listed(*chain, after={f"A{n + 1}": {f"A{n}"} for n in range(3)}), count=3)
    assert numbers == {0}


def test_nothing_to_do_starts_nobody() -> None:
    def never(number: int, inbox: Inbox) -> Worker:
        raise AssertionError

    Scheduler(never, 2, Silent(), Stop(), lambda number, environment: None).run(Listed())


def test_what_a_lost_worker_did_is_done_by_another() -> None:
    tries = iter([True, False])

    def dies_once(here: Here) -> str:
        if next(tries):
            raise GoneError
        return "done"

    agenda = Listed(Act("A0", dies_once))
    assert run(agenda) == ["note: the process that worked on A0 is gone; another one takes over"]
    assert agenda.results == {"A0": "done"}


def test_an_order_that_no_worker_survives_is_given_up() -> None:
    tries: list[int] = []

    def deadly(here: Here) -> None:
        tries.append(here.number)
        raise GoneError

    with pytest.raises(
        RunError, match="A0 ended its process 3 times without an error message, perhaps for lack of memory"
    ):
        run(Listed(Act("A0", deadly)))
    assert len(tries) == ATTEMPTS


def until_stopped(here: Here) -> None:
    while not here.stop():
        threading.Event().wait(0.01)
    raise here.stop.error()


def test_an_error_stops_the_others_first() -> None:
    seen: list[int] = []

    def waits(here: Here) -> None:
        try:
            until_stopped(here)
        finally:
            seen.append(here.stop.reason)

    def diverges(here: Here) -> None:
        raise DivergenceError("the loss is not finite")

    with pytest.raises(DivergenceError, match="the loss is not finite") as caught:
        run(Listed(Act("A0", waits), Act("B0", diverges)))
    assert seen
    assert seen[0] > 1
    assert "diverges" in "".join(caught.value.__notes__)  # where it came from, for --debug


def test_an_error_that_cannot_be_sent_is_sent_as_text() -> None:
    class Strange(ConfigError):
        def __init__(self, text: str, more: int) -> None:
            super().__init__(text)

    def fails(here: Here) -> None:
        raise Strange("no", 1)

    with pytest.raises(RuntimeError, match="Strange: no"):
        run(Listed(Act("A0", fails)))


def test_a_spent_budget_stops_all_after_a_first_order() -> None:
    agenda = Listed(Act("A0", until_stopped), Act("B0", until_stopped), Act("C0", until_stopped))
    with pytest.raises(Stopped, match="stopped by the budget") as caught:
        run(agenda, stop=Stop(1e-9))
    assert caught.value.code == 3


def test_a_budget_that_ends_with_the_last_order_stops_nothing() -> None:
    agenda = Listed(Act("A0", lambda here: "done"))
    run(agenda, stop=Stop(1e-9))
    assert agenda.results == {"A0": "done"}


def test_a_worker_that_never_starts_is_not_waited_for() -> None:
    class Pending(Thread):
        def _live(self) -> None:
            if self.number == 0:  # there is no room for the others
                super()._live()

    agenda = Listed(*(Act(f"A{n}", lambda here: here.number) for n in range(3)))
    Scheduler(Pending, 2, Silent(), Stop(), lambda number, environment: None).run(agenda)
    assert agenda.results == {"A0": 0, "A1": 0, "A2": 0}


def test_a_signal_before_the_first_order_begins_nothing() -> None:
    stop = Stop()
    stop.adopt(1 + 2)
    agenda = Listed(Act("A0", lambda here: "done"))
    with pytest.raises(Stopped, match="SIGINT"):
        run(agenda, stop=stop)
    assert agenda.results == {}


def test_a_signal_to_one_worker_stops_all() -> None:
    def asked(here: Here) -> None:
        here.stop.adopt(1 + 15)
        raise here.stop.error()

    with pytest.raises(Stopped, match="SIGTERM"):
        run(Listed(Act("A0", asked), Act("B0", until_stopped)))
