"""A worker as a process on this machine: orders come by its standard input, messages go by its standard output."""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from queue import SimpleQueue
from typing import IO, Any

from dmt.runs.stopping import Stop
from dmt.workers import serving
from dmt.workers.messages import Lost, Message, Order
from dmt.workers.pool import Inbox, Worker

PROGRAM = "import sys; sys.path[:] = sys.argv[2:]; from dmt.workers import process; process.main(int(sys.argv[1]))"
"""Finds modules where this process does, whatever that was told to import from."""

PATIENCE = 10.0
"""Seconds for a worker without orders to end."""


class Process(Worker):
    """One that this process started."""

    def __init__(self, number: int, inbox: Inbox) -> None:
        super().__init__(number)
        words = [sys.executable, "-c", PROGRAM, str(number), *sys.path]
        # a session of its own: Ctrl-C reaches this process alone, which then asks its workers to stop
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self._sending = threading.Lock()
        threading.Thread(target=self._listen, args=(inbox,), daemon=True).start()

    def _listen(self, inbox: Inbox) -> None:
        """Pass on what it says, until it says no more."""
        assert self.process.stdout is not None
        with self.process.stdout as said:
            for message in _received(said):
                inbox.put((self, message))
        inbox.put((self, Lost()))

    def hand(self, order: Order) -> None:
        self._send(order)

    def stop(self, reason: int) -> None:
        self._send(reason)

    def _send(self, what: Order | int | None) -> None:
        assert self.process.stdin is not None
        with self._sending, contextlib.suppress(OSError):  # if it is gone, whoever listens hears of it
            pickle.dump(what, self.process.stdin)
            self.process.stdin.flush()

    def end(self) -> None:
        self._send(None)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(PATIENCE)
        self.kill()

    def kill(self) -> None:
        assert self.process.stdin is not None
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):
            self.process.stdin.close()


def _received(stream: IO[bytes]) -> Iterator[Any]:
    """Everything that comes, one after the other; what was cut short is left out."""
    while True:
        try:
            yield pickle.load(stream)
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            return


def main(number: int) -> None:
    """The whole life of the process."""
    warnings.filterwarnings("ignore", module=r"PIL\b")  # as in the command
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever prints must not disturb
    sending = threading.Lock()

    def send(message: Message) -> None:
        with sending:
            try:
                pickle.dump(message, out)
                out.flush()
            except BrokenPipeError:  # nobody listens any more
                stop.adopt(1 + signal.SIGTERM)

    stop, inbox = Stop(), SimpleQueue[Order | None]()
    threading.Thread(target=_listen, args=(inbox, stop), daemon=True).start()
    with stop.on_signals():
        serving.serve(number, inbox, send, stop)
    os._exit(0)  # else the interpreter would wait for the thread that reads standard input


def _listen(inbox: "SimpleQueue[Order | None]", stop: Stop) -> None:
    """Hear orders and reasons to stop; without a process that gives them, stop at a checkpoint and end."""
    for what in _received(sys.stdin.buffer):
        if isinstance(what, int):
            stop.adopt(what)
        else:
            inbox.put(what)
    stop.adopt(1 + signal.SIGTERM)
    inbox.put(None)
