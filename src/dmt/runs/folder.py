"""A run's folder: locks, manifest and jobs. The names of its files are in `dmt.run_files`."""

import datetime
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from dmt import config as configuration
from dmt import files, outputs, presets, run_files, schemas
from dmt.config import Config
from dmt.data.texts import Derived
from dmt.errors import ConfigError, RunError
from dmt.run_files import MANIFEST
from dmt.runs import starting
from dmt.tasks import opening
from dmt.tasks.base import Task
from dmt.training.checkpoint import Checkpoint
from dmt.training.journal import Journal

LOCK_WAIT = 0.2
"""Seconds to wait for a run's lock: another process may hold it for a moment only to see whether it is held."""

STAGE_WAIT = 60.0
"""Seconds to wait for a stage's lock: a worker whose session was killed keeps it until its current step ends."""


def plain(value: Any) -> Any:
    """Return a value as it would come back from JSON: tuples become lists."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def warnings_of(manifest: dict[str, Any]) -> tuple[str, ...] | None:
    """Return the image errors that a manifest records; see `Folder.warnings`."""
    found = manifest.get("warnings")
    return None if found is None else tuple(found)


@dataclass(frozen=True)
class Job:
    """One method with one seed.

    Attributes:
        stages: outlines of the stages (`Work.outline`) in training order.
        results: names of the last stage of each line.
        keep: whether the nets of the "last" round or of the "best" one by validation are used.
    """

    method: str
    seed: int
    stages: list[dict[str, Any]]
    results: list[str]
    keep: str = "last"


def require_same_options(made: str, defaults: Config, known: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Refuse options that differ from those an earlier result was made with.

    Args:
        made: subject and verb for the error message, e.g. "runs/a was made".
        defaults: the preset's configuration, for options that were added since.
        known: the recorded options.
        wanted: the options now, as they would come back from JSON.

    Raises:
        RunError: if an option differs or no longer exists.
    """
    try:
        was = plain(configuration.recorded(defaults, known))
    except ConfigError as error:
        raise RunError(f"{error}, or give another --out") from error
    for key, value in wanted.items():
        if was[key] != value and key != configuration.PLACES:
            raise RunError(f"{made} with {key}={was[key]}, not {key}={value}; give another --out")


class Folder:
    """A run's folder: its paths, locks and manifest."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def begun(self) -> bool:
        """Whether the folder holds a run, finished or not."""
        return (self.path / MANIFEST).is_file()

    def stage(self, place: str) -> Path:
        return self.path / run_files.STAGES / place

    def finished(self, place: str) -> bool:
        """Whether a stage is trained, scored and audited, so that nothing is left to do."""
        if not Checkpoint(self.stage(place)).done:
            return False
        return any(line["kind"] == "round" for line in Journal(self.stage(place) / run_files.JOURNAL).read())

    @contextmanager
    def claimed(self, head: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Lock the folder and bind it to one data set and configuration; an existing run must match them.

        Args:
            head: what a new run is bound to: ``data``, ``config``, ``images`` (a fingerprint), ``starts``, ``threads``;
                also ``warnings``, errors in the user's images that the run is trained in spite of; ``search``, the
                findings of the folds; ``shortened``, how a budget shortened the first nets.

        Yields:
            The manifest. If the run existed before, it holds the number of threads that the run began with.

        Raises:
            RunError: if the folder is in use, holds something else, or was made with other data or options.
        """
        with self.reserved():
            if (self.path / MANIFEST).exists():
                self._require_same(head)
                self._follow(head)
                if "warnings" in head and self.warnings() is None:  # made by a release that did not check images
                    files.write_json(self.path / MANIFEST, self.manifest() | {"warnings": list(head["warnings"])})
            else:
                files.write_json(self.path / MANIFEST, plain(head) | {"jobs": []})
            self.sweep()
            yield self.manifest()

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """Make the folder if it does not exist and lock it, without binding it to a configuration."""
        self.require_ours()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"cannot make {self.path}: {error.strerror}; give another --out") from error
        with self.locked():
            yield

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder: no other process may write here. If this process dies, the system releases the lock.

        Workers of the locking process write only into the stages that they have claimed.
        """
        files.require_no_links(self.path)
        with self._held(self.path / run_files.LOCK, LOCK_WAIT, str(self.path)):
            yield

    @contextmanager
    def stage_claimed(self, place: str) -> Iterator[None]:
        """Lock one stage: no other process may write into it. If this process dies, the system releases the lock."""
        lock = run_files.claim(self.path, place)
        lock.parent.mkdir(parents=True, exist_ok=True)
        with self._held(lock, STAGE_WAIT, f"{place} in {self.path}"):
            yield

    def _held(self, file: Path, patience: float, what: str) -> AbstractContextManager[object]:
        """Acquire the lock of a file and return it as a context manager that releases it.

        Args:
            file: the lock file.
            patience: seconds to wait for it.
            what: what it protects, for the error message.
        """
        lock = FileLock(file, timeout=patience)
        try:
            return lock.acquire(poll_interval=LOCK_WAIT / 4)
        except Timeout:
            raise RunError(f"{what} is in use by another process; wait for it to finish") from None
        except OSError as error:
            raise RunError(
                f"cannot write to {self.path}: {error.strerror}; allow it, or give another folder"
            ) from error

    @property
    def in_use(self) -> bool:
        """Whether a living process holds the folder's lock."""
        lock = self.path / run_files.LOCK
        if not lock.is_file():
            return False
        try:
            with FileLock(lock, timeout=0):
                return False
        except (Timeout, OSError):  # held, or we lack permission to try
            return True

    def require_ours(self) -> None:
        """Refuse a path that is neither a run nor an empty or new folder, before anything is written there."""
        outputs.require_outside_runs(self.path)
        if self.path.exists() and not self.path.is_dir():
            raise RunError(f"{self.path} is a file; give another --out")
        if self.path.is_dir() and not (self.path / MANIFEST).exists() and self._foreign():
            raise RunError(f"{self.path} contains other files but no run; give an empty or new --out")
        self._require_writable()

    def _require_writable(self) -> None:
        """Refuse a place without permission at once, not after minutes of looking at images."""
        place = next(each for each in (self.path, *self.path.absolute().parents) if each.exists())
        if not os.access(place, os.W_OK):
            what = f"cannot write to {place}" if place == self.path else f"cannot make {self.path} in {place}"
            raise RunError(f"{what}: Permission denied; allow it, or give another --out")

    def _foreign(self) -> list[Path]:
        return [path for path in self.path.iterdir() if not path.name.startswith(".")]

    def sweep(self) -> None:
        """Remove temporary files of processes that were killed while writing. The folder must be locked."""
        for path in self.path.rglob(f"{files.TEMPORARY}*"):
            path.unlink(missing_ok=True)  # a worker that outlived its session may be about to rename it

    def _require_same(self, head: dict[str, Any]) -> None:
        known, head = self.manifest(), plain(head)
        if known["data"] != head["data"]:
            raise RunError(f"{self.path} was made for '{known['data']}', not '{head['data']}'; give another --out")
        require_same_options(
            f"{self.path} was made", presets.get(known["data"]).config, known["config"], head["config"]
        )
        for line, start in head["starts"].items():
            was = known.get("starts", starting.RANDOM)[line]
            if was["digest"] != start["digest"]:
                raise RunError(
                    f"{self.path} was made with line {line} starting from {was['name']}, not {start['name']}; "
                    f"give another --out"
                )
        if known["images"] != head["images"]:
            own = head.get("folder")
            if own is None:
                raise RunError(f"{self.path} was made with other images; give the same --data, or another --out")
            changed = opening.changed(known["images"], head["images"])
            told = f" ({changed} images have changed)" if changed else ""
            raise RunError(f"{self.path} was made with other images than {own} holds{told}; give another --out")

    def _follow(self, head: dict[str, Any]) -> None:
        """Record the current location of the images if it has changed."""
        known, head = self.manifest(), plain(head)
        folder, now = head.get("folder"), head["config"].get(configuration.PLACES)
        followed = known if folder is None else known | {"folder": folder}
        if now is not None and configuration.PLACES in known["config"]:
            followed = followed | {"config": known["config"] | {configuration.PLACES: now}}
        if followed != known:
            files.write_json(self.path / MANIFEST, followed)

    def manifest(self) -> dict[str, Any]:
        if not self.path.is_dir():
            raise RunError(f"there is no run folder {self.path}; make one with dmt fit")
        if (line := run_files.only_begun(self.path)) is not None:
            raise RunError(line)
        manifest: dict[str, Any] = files.read_json(self.path / MANIFEST, schemas.RUN)
        return manifest

    def starts(self) -> dict[str, dict[str, str]] | None:
        """Return name and digest of the recorded start of each line; None if there is no run yet."""
        if not self.begun:
            return None
        known: dict[str, dict[str, str]] = self.manifest().get("starts", starting.RANDOM)
        return known

    def warnings(self) -> tuple[str, ...] | None:
        """Return errors in the user's images that the run was trained in spite of; None if it never checked for any."""
        return warnings_of(self.manifest())

    def jobs(self) -> list[Job]:
        return [Job(**job) for job in self.manifest()["jobs"]]

    def add_jobs(self, jobs: Sequence[Job]) -> None:
        """Record jobs, appending new ones: methods and seeds can be added to a run."""
        known = {(job.method, job.seed): job for job in self.jobs()}
        for job in jobs:
            self._require_same_stages(known.get((job.method, job.seed), job), job)
        known |= {(job.method, job.seed): job for job in jobs}
        files.write_json(self.path / MANIFEST, self.manifest() | {"jobs": [asdict(job) for job in known.values()]})

    def _require_same_stages(self, known: Job, job: Job) -> None:
        """Refuse stages whose identities have changed: another release trained them differently with these options."""
        before, now = ({stage["name"]: stage.get("identity") for stage in each.stages} for each in (known, job))
        changed = [name for name in before | now if before.get(name) != now.get(name)]
        if changed:
            raise RunError(
                f"{self.path} holds {changed[0]} of {job.method} as {self.maker()} trained it, and this release trains "
                f"it differently; resume it with that release, or give another --out"
            )

    def maker(self) -> str:
        """Return the release that made the run, as text."""
        first = next(Journal(self.path / run_files.SESSIONS).read(), {})
        return f"dmt {first['dmt']}" if "dmt" in first else "another release of dmt"

    def log_session(self, environment: dict[str, Any]) -> None:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        Journal(self.path / run_files.SESSIONS).write("session", time=now, **environment)

    def record_split(self, seed: int, task: Task) -> None:
        """Write which images are labeled, unlabeled and for validation; refuse if another split is recorded."""
        path = run_files.split(self.path, seed)
        others = task.unlabeled
        parts: dict[str, Any] = {
            "labeled": task.labeled.ids,
            "unlabeled": others.ids,
            "validation": task.validation.ids,
        }
        if isinstance(others.ids, Derived):  # too many to list
            del parts["unlabeled"]
            parts["pool"] = {"images": len(others), "fingerprint": others.fingerprint}
        if not path.exists():
            files.write_json(path, parts)
        elif files.read_json(path) != plain(parts):
            raise RunError(f"{path} is damaged: it is not the split of this run; delete it, and it is written again")
