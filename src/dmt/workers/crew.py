"""How many workers to start, and where."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from dmt.errors import ConfigError
from dmt.workers.pool import Start
from dmt.workers.process import Process

RAY = "ray"


@dataclass(frozen=True)
class Crew:
    """Workers that carry out several orders of a run at once.

    Attributes:
        jobs: maximum number of workers; None for as many as a cluster has room for.
        address: address of a Ray cluster, empty for the one that Ray finds or starts; None for processes on this
            machine.
    """

    jobs: int | None
    address: str | None = None

    @property
    def on(self) -> str | None:
        """The place as given by the user: None for this machine, or "ray:ADDRESS"."""
        return None if self.address is None else f"{RAY}:{self.address}"

    def device(self, name: str) -> str:
        """Return the device name for a worker; a cluster itself decides which GPU it gets."""
        return name if self.address is None else name.partition(":")[0]

    @contextmanager
    def started(self, threads: int, device: str) -> Iterator[tuple[Start, int]]:
        """Connect to the cluster, if there is one; yield a function that starts a worker, and the number of workers.

        Args:
            threads: number of CPU threads of each worker.
            device: the device as named by the user.
        """
        if self.address is None:
            assert self.jobs is not None
            yield Process, self.jobs
            return
        from dmt.workers import ray_cluster

        with ray_cluster.joined(self.address) as cluster:
            start, room = cluster.offer(threads, device)
            yield start, self.jobs or room

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Stay connected to the cluster, if there is one, across several uses of `started`."""
        if self.address is None:
            yield
            return
        from dmt.workers import ray_cluster

        with ray_cluster.joined(self.address):
            yield

    def describe(self) -> dict[str, Any]:
        """Return entries for the record of a session."""
        found: dict[str, Any] = {} if self.jobs is None else {"jobs": self.jobs}
        return found if self.address is None else found | {"on": RAY}


def of(jobs: int | None, on: str | None) -> Crew | None:
    """Return the requested crew, or None to train everything in this process.

    Args:
        jobs: number of workers; None for one, or for as many as a cluster has room for.
        on: "ray", or "ray:ADDRESS"; None for this machine.
    """
    if jobs is not None and (not isinstance(jobs, Integral) or isinstance(jobs, bool) or jobs < 1):
        raise ConfigError(f"jobs takes a whole number of 1 or more, not {jobs!r}")
    if on is None:
        return None if jobs in (None, 1) else Crew(jobs)
    name, _, address = on.partition(":") if isinstance(on, str) else ("", "", "")
    if name != RAY:
        raise ConfigError(f"on takes ray or ray:ADDRESS, not {on!r}")
    require_ray()
    return Crew(jobs, on if address.startswith("//") else address)


def require_ray() -> None:
    """Refuse to continue without Ray, which is an optional dependency."""
    try:
        import ray  # noqa: F401
    except ImportError:
        raise ConfigError("workers on Ray need the package ray: pip install 'dmt-vision[ray]'") from None
