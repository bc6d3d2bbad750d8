"""A run's folder: who may write into it, what it was made for, what it holds.

```
runs/a/
  run.json                configuration, jobs (method, seed) and their stages
  sessions.jsonl          versions, hardware, git state and command of every session that worked on it
  splits/seed-1.json      ids of labeled, unlabeled and validation images
  stages/A1-<identity>/   state.json, step-…/{net,ema,optimizer}.safetensors, pseudo.*, journal.jsonl
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
from dmt.tasks.base import Task
from dmt.training.journal import Journal


@dataclass(frozen=True)
class Job:
    """One method with one seed. ``stages`` are outlines in order; ``results`` names the last of each line."""

    method: str
    seed: int
    stages: list[dict[str, Any]]
    results: list[str]


class Folder:
    """Paths and manifest of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def stage(self, place: str) -> Path:
        return self.path / "stages" / place

    @contextmanager
    def claimed(self, data: str, options: dict[str, Any]) -> Iterator[None]:
        """Within, this process alone may write here, and only for this configuration."""
        manifest = self.path / "run.json"
        if self.path.exists() and not self.path.is_dir():
            raise RunError(f"{self.path} is a file; give another --out")
        if self.path.is_dir() and not manifest.exists() and self._foreign():
            raise RunError(f"{self.path} holds other files and no run; give an empty or new --out")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"cannot make {self.path}: {error.strerror}; give another --out") from error
        with self.locked():
            self._require_same(data, options)
            yield

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Within, no other process may write here. The system frees the lock of a process that dies."""
        lock = FileLock(self.path / ".lock", timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise RunError(f"{self.path} is in use by another process; wait for it or give another --out") from None
        except OSError as error:
            raise RunError(f"cannot write to {self.path}: {error.strerror}; give another --out") from error
        try:
            yield
        finally:
            lock.release()

    def _foreign(self) -> list[Path]:
        return [path for path in self.path.iterdir() if path.name != ".lock" and not path.name.startswith(".run.json-")]

    def _require_same(self, data: str, options: dict[str, Any]) -> None:
        manifest = self.path / "run.json"
        plain = {key: list(value) if isinstance(value, tuple) else value for key, value in options.items()}
        if not manifest.exists():
            files.write_json(manifest, {"data": data, "config": plain, "jobs": []})
            return
        known = files.read_json(manifest)
        if known["data"] != data:
            raise RunError(f"{self.path} was made for '{known['data']}', not '{data}'; give another --out")
        for key, value in plain.items():
            if known["config"].get(key) != value:
                was = known["config"].get(key)
                raise RunError(f"{self.path} was made with {key}={was}, not {key}={value}; give another --out")

    def manifest(self) -> dict[str, Any]:
        if not self.path.is_dir():
            raise RunError(f"there is no run folder {self.path}; make one with dmt fit")
        return files.read_json(self.path / "run.json")  # type: ignore[no-any-return]

    def jobs(self) -> list[Job]:
        return [Job(**job) for job in self.manifest()["jobs"]]

    def add_jobs(self, jobs: Sequence[Job]) -> None:
        """Remember jobs, new ones after those that were there; a run may grow by methods and seeds."""
        known = {(job.method, job.seed): job for job in self.jobs()}
        known |= {(job.method, job.seed): job for job in jobs}
        files.write_json(self.path / "run.json", self.manifest() | {"jobs": [asdict(job) for job in known.values()]})

    def log_session(self, environment: dict[str, Any]) -> None:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        Journal(self.path / "sessions.jsonl").write("session", time=now, **environment)

    def record_split(self, seed: int, task: Task) -> None:
        """Which image went where, for people and for later tools; made anew from the seed by every session."""
        path = self.path / "splits" / f"seed-{seed}.json"
        if not path.exists():
            parts = {"labeled": task.labeled.ids, "unlabeled": task.unlabeled.ids, "validation": task.validation.ids}
            files.write_json(path, parts)
