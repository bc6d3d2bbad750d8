"""Workers as actors on a Ray cluster. Ray places each of them, and reports if one is gone."""

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
"""Seconds that one request for a worker's messages waits for the first."""

PATIENCE = 10.0
"""Seconds to wait until the listening thread notices that a worker was killed."""


class Served:
    """The worker's side: a thread carries out orders, and its messages are queued until they are fetched."""

    def __init__(self, number: int) -> None:
        self._inbox: SimpleQueue[Order | None] = SimpleQueue()
        self._said: SimpleQueue[Message] = SimpleQueue()
        self._stop = Stop()
        words = (number, self._inbox, self._said.put, self._stop)
        threading.Thread(target=serving.serve, args=words, daemon=True).start()

    def hand(self, order: Order | None) -> None:
        """Add an order to the queue; None ends the worker."""
        self._inbox.put(order)

    def stop(self, reason: int) -> None:
        """Ask the thread to stop at a checkpoint."""
        self._stop.adopt(reason)

    def said(self) -> list[Message]:
        """Return the messages since the last call, after waiting up to `LISTENS` seconds for the first."""
        found: list[Message] = []
        try:
            found.append(self._said.get(timeout=LISTENS))
            while True:
                found.append(self._said.get_nowait())
        except Empty:
            return found


class Actor(Worker):
    """The main process's side of a worker."""

    def __init__(self, number: int, inbox: Inbox, *, needs: dict[str, float]) -> None:
        super().__init__(number)
        # concurrent calls, since one of them waits for messages most of the time
        self._actor = ray.remote(Served).options(max_concurrency=4, **needs).remote(number)
        self._ended = False
        self._listener = threading.Thread(target=self._listen, args=(inbox,), daemon=True)
        self._listener.start()

    def _listen(self, inbox: Inbox) -> None:
        """Pass on the worker's messages until it is gone."""
        try:
            while not self._ended:
                for message in ray.get(self._actor.said.remote()):
                    inbox.put((self, message))
        except Exception:  # the worker or the cluster is gone
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
        self._listener.join(PATIENCE)  # after disconnecting, another call would start a new cluster


class Cluster:
    """The Ray cluster that this process is connected to."""

    def offer(self, threads: int, device: str) -> tuple[Start, int]:
        """Return a function that starts a worker, and the number of workers that the cluster's resources allow.

        A worker requests as many CPUs as it has threads, and a GPU unless the device is "cpu" or there is none.
        """
        there: dict[str, float] = ray.cluster_resources()
        on_gpu = device != "cpu" and there.get("GPU", 0) >= 1
        needs = {"num_cpus": float(threads), "num_gpus": 1.0 if on_gpu else 0.0}
        room = min([there.get("CPU", 1) / threads, *([there["GPU"]] if on_gpu else [])])
        return partial(Actor, needs=needs), max(1, int(room))


@contextmanager
def joined(address: str) -> Iterator[Cluster]:
    """Connect to the cluster at an address or, if it is empty, to the one that Ray finds or starts."""
    if ray.is_initialized():
        yield Cluster()
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
    asks_to_stop = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address or None, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
    except (RayError, ConnectionError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        where = f" at {address}" if address else ""
        raise RunError(f"no Ray cluster can be joined{where} ({reason}); ray status shows what is there") from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, asks_to_stop)  # Ray's handler would end the process at once
    try:
        yield Cluster()
    finally:
        ray.shutdown()
