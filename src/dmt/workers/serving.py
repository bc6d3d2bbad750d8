"""The main loop of a worker: carry out one order after the other and report progress."""

import pickle
import time
import traceback
from collections.abc import Callable
from queue import SimpleQueue

import torch

from dmt.runs import environment
from dmt.runs.progress import Watcher
from dmt.runs.stopping import Stop, Stopped
from dmt.workers.messages import Done, Failed, Halted, Here, Message, Order, Ready, Said

Send = Callable[[Message], None]

EVERY = 0.2
"""Minimum number of seconds between two progress messages."""


class Reporter(Watcher):
    """Watcher that sends its calls as messages; progress within a stage is sent at most every `EVERY` seconds."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._steps, self._sent = 0, 0.0

    def begin(self, total: float, done: float) -> None:
        self._send(Said("begin", (total, done)))

    def stage(self, title: str, steps: int, done: int, work: float) -> None:
        self._steps = steps
        self._send(Said("stage", (title, steps, done, work)))

    def step(self, done: int) -> None:
        if done == self._steps or self._due():
            self._send(Said("step", (done,)))

    def worked(self, work: float) -> None:
        self._send(Said("worked", (work,)))

    def spared(self, work: float) -> None:
        self._send(Said("spared", (work,)))

    def busy(self, title: str, done: int, of: int) -> None:
        if self._due():
            self._send(Said("busy", (title, done, of)))

    def note(self, text: str) -> None:
        self._send(Said("note", (text,)))

    def _due(self) -> bool:
        now = time.monotonic()
        due = now - self._sent >= EVERY
        self._sent = now if due else self._sent
        return due


def serve(number: int, inbox: "SimpleQueue[Order | None]", send: Send, stop: Stop) -> None:
    """Carry out orders until None arrives."""
    here = Here(number, Reporter(send), stop)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with here.until_end:
        send(Ready(environment.describe(device)))
        while (order := inbox.get()) is not None:
            send(_outcome(order, here))


def _outcome(order: Order, here: Here) -> Message:
    try:
        return Done(order.carry_out(here))
    except Stopped:
        return Halted(here.stop.reason)
    except Exception as error:
        return Failed(_portable(error))


def _portable(error: Exception) -> Exception:
    """Attach the traceback to an error for `--debug`; replace errors that cannot be pickled by their text."""
    error.add_note("".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # whatever an error of any library may refuse with
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
