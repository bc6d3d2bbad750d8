"""A worker as a process on this machine: orders arrive on its standard input, messages leave on its standard output."""

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
"""Program of a worker; it imports modules from the same paths as this process."""

PATIENCE = 10.0
"""Seconds that a worker without orders has to end before it is killed."""


class Process(Worker):
    """A worker that this process started as a child process."""

    def __init__(self, number: int, inbox: Inbox) -> None:
        super().__init__(number)
        words = [sys.executable, "-c", PROGRAM, str(number), *sys.path]
        # in a new session, so that Ctrl-C reaches this process only, which then asks its workers to stop
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self._sending = threading.Lock()
        threading.Thread(target=self._listen, args=(inbox,), daemon=True).start()

    def _listen(self, inbox: Inbox) -> None:
        """Pass on the worker's messages until its output ends."""
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
        with self._sending, contextlib.suppress(OSError):  # if the worker is gone, the listening thread reports it
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
    """Yield the pickled objects of a stream until it ends, or until one is truncated or cannot be loaded here."""
    while True:
        try:
            found = pickle.load(stream)
        except Exception:  # loading runs code of the object's class, whose module may even be missing
            return
        yield found


def main(number: int) -> None:
    """Run the worker process until it is ended."""
    warnings.filterwarnings("ignore", module=r"PIL\b")  # as the dmt command does
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # prints must not get between the messages
    sending = threading.Lock()

    def send(message: Message) -> None:
        with sending:
            try:
                pickle.dump(message, out)
                out.flush()
            except BrokenPipeError:  # the main process is gone
                stop.adopt(1 + signal.SIGTERM)

    stop, inbox = Stop(), SimpleQueue[Order | None]()
    threading.Thread(target=_listen, args=(inbox, stop), daemon=True).start()
    with stop.on_signals():
        serving.serve(number, inbox, send, stop)
    os._exit(0)  # otherwise the interpreter would wait for the thread that reads standard input


def _listen(inbox: "SimpleQueue[Order | None]", stop: Stop) -> None:
    """Receive orders and reasons to stop; if the main process is gone, stop at a checkpoint and end."""
    for what in _received(sys.stdin.buffer):
        if isinstance(what, int):
            stop.adopt(what)
        else:
            inbox.put(what)
    stop.adopt(1 + signal.SIGTERM)
    inbox.put(None)
