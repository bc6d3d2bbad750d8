"""How many workers there shall be, and where."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dmt.errors import ConfigError
from dmt.workers.pool import Start
from dmt.workers.process import Process

RAY = "ray"


@dataclass(frozen=True)
class Crew:
    """Workers that do several things of a run at once.

    Attributes:
        jobs: how many at most; None for as many as there is room for on a cluster.
        address: of a Ray cluster, empty for the one that Ray finds or starts; None for processes on this machine.
    """

    jobs: int | None
    address: str | None = None

    @property
    def on(self) -> str | None:
        """Where, as a user says it."""
        return None if self.address is None else f"{RAY}:{self.address}"

    def device(self, name: str) -> str:
        """The device of a worker, as a user names it: a cluster decides itself which GPU it is."""
        return name if self.address is None else name.partition(":")[0]

    @contextmanager
    def started(self, threads: int, device: str) -> Iterator[tuple[Start, int]]:
        """Within, workers can be started; yields how, and how many.

        Args:
            threads: that each of them computes with.
            device: as a user names it.
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
        """Within, a cluster stays connected from one use to the next."""
        if self.address is None:
            yield
            return
        from dmt.workers import ray_cluster

        with ray_cluster.joined(self.address):
            yield

    def describe(self) -> dict[str, Any]:
        """For the record of a session."""
        found: dict[str, Any] = {} if self.jobs is None else {"jobs": self.jobs}
        return found if self.address is None else found | {"on": RAY}


def of(jobs: int | None, on: str | None) -> Crew | None:
    """What was asked for; None for this process alone.

    Args:
        on: "ray", or "ray:ADDRESS"; None for this machine.
    """
    if jobs is not None and jobs < 1:
        raise ConfigError(f"--jobs takes 1 or more, not {jobs}")
    if on is None:
        return None if jobs in (None, 1) else Crew(jobs)
    name, _, address = on.partition(":")
    if name != RAY:
        raise ConfigError(f"--on takes ray or ray:ADDRESS, not '{on}'")
    require_ray()
    return Crew(jobs, on if address.startswith("//") else address)


def require_ray() -> None:
    """Ray is an extra."""
    try:
        import ray  # noqa: F401
    except ImportError:
        raise ConfigError("--on ray needs Ray: pip install 'dmt-vision[ray]'") from None
