"""Workers as actors of a Ray cluster. Ray finds a place for each of them, and tells if one is gone."""

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from queue import Empty, SimpleQueue

import ray
from ray.exceptions import RayError

from dmt.errors import RunError
from dmt.runs.stopping import Stop
from dmt.workers import serving
from dmt.workers.messages import Lost, Message, Order
from dmt.workers.pool import Inbox, Start, Worker

LISTENS = 1.0
"""Seconds that a worker is waited for at a time to say something."""

PATIENCE = 10.0
"""Seconds until a worker that is ended is known to be gone."""


class Served:
    """The worker's side: a thread carries out orders, and what it says waits to be asked for."""

    def __init__(self, number: int) -> None:
        self._inbox: SimpleQueue[Order | None] = SimpleQueue()
        self._said: SimpleQueue[Message] = SimpleQueue()
        self._stop = Stop()
        words = (number, self._inbox, self._said.put, self._stop)
        threading.Thread(target=serving.serve, args=words, daemon=True).start()

    def hand(self, order: Order | None) -> None:
        """The next order; None for none to come."""
        self._inbox.put(order)

    def stop(self, reason: int) -> None:
        """Stop at a checkpoint."""
        self._stop.adopt(reason)

    def said(self) -> list[Message]:
        """All that was said since it was asked for last, if need be after some waiting."""
        found: list[Message] = []
        try:
            found.append(self._said.get(timeout=LISTENS))
            while True:
                found.append(self._said.get_nowait())
        except Empty:
            return found


class Actor(Worker):
    """Our side of one."""

    def __init__(self, number: int, inbox: Inbox, *, needs: dict[str, float]) -> None:
        super().__init__(number)
        # several calls at a time: one waits for what is said, the others come through
        self._actor = ray.remote(Served).options(max_concurrency=4, **needs).remote(number)
        self._ended = False
        self._listener = threading.Thread(target=self._listen, args=(inbox,), daemon=True)
        self._listener.start()

    def _listen(self, inbox: Inbox) -> None:
        """Pass on what it says, until it is gone."""
        try:
            while not self._ended:
                for message in ray.get(self._actor.said.remote()):
                    inbox.put((self, message))
        except Exception:  # it is gone, or the cluster is
            inbox.put((self, Lost()))

    def hand(self, order: Order) -> None:
        self._actor.hand.remote(order)

    def stop(self, reason: int) -> None:
        self._actor.stop.remote(reason)

    def end(self) -> None:
        self.kill()

    def kill(self) -> None:
        self._ended = True
        ray.kill(self._actor)
        self._listener.join(PATIENCE)  # once the cluster is left, a question would start another one


class Cluster:
    """One that this process is connected to."""

    def offer(self, threads: int, device: str) -> tuple[Start, int]:
        """How to start workers there, and for how many there is room now.

        A worker asks for so many CPUs as it has threads and, unless the device is "cpu" or there is none, for a GPU.
        """
        there: dict[str, float] = ray.cluster_resources()
        on_gpu = device != "cpu" and there.get("GPU", 0) >= 1
        needs = {"num_cpus": float(threads), "num_gpus": 1.0 if on_gpu else 0.0}
        room = min([there.get("CPU", 1) / threads, *([there["GPU"]] if on_gpu else [])])
        return partial(Actor, needs=needs), max(1, int(room))


@contextmanager
def joined(address: str) -> Iterator[Cluster]:
    """Within, this process is connected to a cluster: the one at an address, or the one that Ray finds or starts."""
    if ray.is_initialized():
        yield Cluster()
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is told to anybody
    asks_to_stop = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address or None, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
    except (RayError, ConnectionError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        where = f" at {address}" if address else ""
        raise RunError(f"no Ray cluster can be joined{where} ({reason}); ray status shows what is there") from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, asks_to_stop)  # Ray would end the process at once
    try:
        yield Cluster()
    finally:
        ray.shutdown()
