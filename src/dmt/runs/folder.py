"""A run's folder: who may write into it, what it was made for, what it holds.

```
runs/a/
  run.json                configuration, jobs (method, seed) and their stages
  sessions.jsonl          versions, hardware, git state and command of every session that worked on it
  splits/seed-1.json      ids of labeled, unlabeled and validation images
  skipped.txt             of own images: unlabeled files that could not be read
  samples/seed-1/         of pixels: eight unlabeled images, for the report
  stages/A1-<identity>/   state.json, step-…/{net,ema,optimizer}.safetensors, journal.jsonl, pseudo.json with
                          pseudo.safetensors or, of pixels, pseudo/, audit.json and samples/;
                          evidence-<split>-<copy>.npz: what the net said of every image with truth
  .cache/                 decoded images and labels of pixels, if they are too many for memory
```
"""

import datetime
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from dmt import files
from dmt.errors import RunError
from dmt.runs import starting
from dmt.tasks.base import Task
from dmt.training.checkpoint import Checkpoint
from dmt.training.journal import Journal

MANIFEST, LOCK = "run.json", ".lock"
CACHE = ".cache"
"""Decoded images and labels of pixels, if they are too many for memory; can be made again."""


def plain(value: Any) -> Any:
    """As JSON would give it back: tuples become lists."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class Job:
    """One method with one seed.

    Attributes:
        stages: outlines in order.
        results: names of the last stage of each line.
        keep: which round's nets are used: the "last", or the "best" by validation.
    """

    method: str
    seed: int
    stages: list[dict[str, Any]]
    results: list[str]
    keep: str = "last"


class Folder:
    """Paths and manifest of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def stage(self, place: str) -> Path:
        return self.path / "stages" / place

    def finished(self, place: str) -> bool:
        """Whether a stage is trained, scored and audited: nothing of it is left to do."""
        if not Checkpoint(self.stage(place)).done:
            return False
        return any(line["kind"] == "round" for line in Journal(self.stage(place) / "journal.jsonl").read())

    @contextmanager
    def claimed(self, head: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Within, this process alone may write here, and only for one data set and configuration.

        Args:
            head: what a new run is bound to: ``data``, ``config``, ``images`` (a fingerprint), ``starts``, ``threads``.

        Yields:
            The manifest: of a run that was there before, its own, with the threads it began with.
        """
        self.require_ours()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"cannot make {self.path}: {error.strerror}; give another --out") from error
        with self.locked():
            if (self.path / MANIFEST).exists():
                self._require_same(head)
                self._sweep()
            else:
                files.write_json(self.path / MANIFEST, plain(head) | {"jobs": []})
            yield self.manifest()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Within, no other process may write here. The system frees the lock of a process that dies."""
        lock = FileLock(self.path / LOCK, timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise RunError(f"{self.path} is in use by another process; wait for it to finish") from None
        except OSError as error:
            raise RunError(f"cannot write to {self.path}: {error.strerror}") from error
        try:
            yield
        finally:
            lock.release()

    def require_ours(self) -> None:
        """Refuse a place that is no run and not empty, before anything is written there."""
        if self.path.exists() and not self.path.is_dir():
            raise RunError(f"{self.path} is a file; give another --out")
        if self.path.is_dir() and not (self.path / MANIFEST).exists() and self._foreign():
            raise RunError(f"{self.path} holds other files but no run; give an empty or new --out")

    def _foreign(self) -> list[Path]:
        return [path for path in self.path.iterdir() if not path.name.startswith(".")]

    def _sweep(self) -> None:
        """Remove what a process left that was killed while writing."""
        for path in self.path.rglob(f"{files.TEMPORARY}*"):
            path.unlink()

    def _require_same(self, head: dict[str, Any]) -> None:
        known, head = self.manifest(), plain(head)
        if known["data"] != head["data"]:
            raise RunError(f"{self.path} was made for '{known['data']}', not '{head['data']}'; give another --out")
        for key, value in head["config"].items():
            if known["config"].get(key) != value:
                was = known["config"].get(key)
                raise RunError(f"{self.path} was made with {key}={was}, not {key}={value}; give another --out")
        for line, start in head["starts"].items():
            was = known.get("starts", starting.RANDOM)[line]
            if was["digest"] != start["digest"]:
                raise RunError(
                    f"{self.path} was made with line {line} starting from {was['name']}, not {start['name']}; "
                    f"give another --out"
                )
        if known["images"] != head["images"]:
            raise RunError(f"{self.path} was made with other images; give the same --data, or another --out")

    def manifest(self) -> dict[str, Any]:
        if not self.path.is_dir():
            raise RunError(f"there is no run folder {self.path}; make one with dmt fit")
        manifest: dict[str, Any] = files.read_json(self.path / MANIFEST)
        needed = {"data", "config", "images", "threads", "jobs"}
        if not isinstance(manifest, dict) or not needed <= set(manifest):
            raise RunError(
                f"{self.path / MANIFEST} is damaged: entries that every run has are missing; start in a new folder"
            )
        return manifest

    def starts(self) -> dict[str, dict[str, str]] | None:
        """What the nets of a run that is there started from."""
        if not (self.path / MANIFEST).is_file():
            return None
        known: dict[str, dict[str, str]] = self.manifest().get("starts", starting.RANDOM)
        return known

    def jobs(self) -> list[Job]:
        return [Job(**job) for job in self.manifest()["jobs"]]

    def add_jobs(self, jobs: Sequence[Job]) -> None:
        """Remember jobs, new ones after those that were there; a run may grow by methods and seeds."""
        known = {(job.method, job.seed): job for job in self.jobs()}
        known |= {(job.method, job.seed): job for job in jobs}
        files.write_json(self.path / MANIFEST, self.manifest() | {"jobs": [asdict(job) for job in known.values()]})

    def log_session(self, environment: dict[str, Any]) -> None:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        Journal(self.path / "sessions.jsonl").write("session", time=now, **environment)

    def record_split(self, seed: int, task: Task) -> None:
        """Which image went where, for people and for later tools."""
        path = self.path / "splits" / f"seed-{seed}.json"
        if not path.exists():
            parts = {"labeled": task.labeled.ids, "unlabeled": task.unlabeled.ids, "validation": task.validation.ids}
            files.write_json(path, parts)
