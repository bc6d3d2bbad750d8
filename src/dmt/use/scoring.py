"""Finished runs brought back to life: their nets, measured or ready for use."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from dmt.data.folders.photo_files import shown
from dmt.errors import ConfigError, RunError
from dmt.methods import catalogue
from dmt.models.build import NetSpec
from dmt.results import reading, tables
from dmt.results.reading import JobResult
from dmt.runs import progress
from dmt.runs.folder import Folder
from dmt.tasks import opening
from dmt.tasks.base import Task
from dmt.training import inference
from dmt.training.checkpoint import finished_net
from dmt.types import NetName

SPLITS = ("test", "validation")


def choose(jobs: list[JobResult], method: str | None, seed: int | None) -> list[JobResult]:
    """The jobs asked for; all if nothing was."""
    chosen = [job for job in jobs if method in (None, job.method) and seed in (None, job.seed)]
    if not chosen:
        there = ", ".join(f"{job.method} with seed {job.seed}" for job in jobs) or "nothing"
        raise RunError(f"the run holds no such method and seed; it has {there}")
    return chosen


class Finished:
    """A run's nets beside the data they were trained for."""

    def __init__(
        self, path: Path, data_folder: Path | None, device: torch.device, notify: Callable[[str], None]
    ) -> None:
        self._folder, self._device = Folder(path), device
        self.config = reading.configuration_of(self._folder)
        self.classes = opening.classes(self.config.data)
        manifest = self._folder.manifest()
        if data_folder is None:
            data_folder = Path(manifest.get("folder") or "data")
        with progress.default() as watcher:
            self._data = opening.read(self.config.data, data_folder, notify, watcher.reading)
        if self._data.fingerprint != manifest["images"]:
            raise RunError(f"{path} was made with other images than those in {data_folder}; give the same --data")
        self._jobs = reading.read(self._folder)

    def jobs(self, method: str | None, seed: int | None) -> list[JobResult]:
        return choose(self._jobs, method, seed)

    def task(self, seed: int) -> Task:
        """The data as a seed splits it."""
        return self._data.split(seed)[0]

    def available(self, job: JobResult, on: str) -> str:
        """The images to score: those asked for or, instead of test images where there are none, validation images."""
        return "validation" if on == "test" and not len(self._data.split(job.seed)[0].test) else on

    def score(self, job: JobResult, on: str) -> dict[NetName, inference.Score]:
        """Scores of the kept nets by name, computed now."""
        if on not in SPLITS:
            raise ConfigError(f"--on takes {' or '.join(SPLITS)}, not '{on}'")
        task, _ = self._data.split(job.seed)
        on = self.available(job, on)
        images = task.test if on == "test" else task.validation
        if not len(images):
            raise ConfigError(f"the run has no {on} images; put some into test/ or val/ of its data")
        if on == "validation" and catalogue.get(job.method).ceiling:
            raise ConfigError(
                f"the {catalogue.get(job.method).title} was trained on the validation images; use --on test"
            )
        scores = {}
        for stage in job.kept():
            for copy in stage.copies:
                spec = task.net_spec(self.config.net_of(stage.line))
                net = finished_net(self._folder.stage(stage.place), spec, stage.line, copy).to(self._device)
                scores[stage.net(copy)] = inference.score(net, task, images, self._device)
        return scores


@dataclass(frozen=True)
class Shipped:
    """A run's net, ready for use.

    Attributes:
        net: in eval mode, on the device.
        spec: what it takes: images of one shape, or of any if it labels pixels.
        classes: their names.
        palette: their colors, of pixels.
        name: for people.
        longest: images whose longer side is more than this are made smaller, as in training.
    """

    net: nn.Module
    spec: NetSpec
    classes: tuple[str, ...]
    palette: tuple[tuple[int, int, int], ...]
    name: str
    longest: int | None = None


def preferred(path: Path, method: str | None, seed: int | None) -> JobResult:
    """Of the jobs asked for the one validation prefers; of equals, as without any validation, the last but a Baseline.

    Between methods by plain accuracy or mean IoU: a fine-grained score is for nets that were trained alike.
    """

    def liked(job: JobResult) -> tuple[float, bool]:
        stage, copy = job.shipped()
        score = stage.score("validation", copy)
        return float("-inf") if score is None else score, not catalogue.get(job.method).baseline

    jobs = [job for job in choose(reading.read(Folder(path)), method, seed) if job.finished]
    if not jobs:
        raise RunError(f"nothing in {path} is finished; repeat the fit command to finish it")
    return max(reversed(jobs), key=liked)


def shipped_net(path: Path, method: str | None, seed: int | None, device: torch.device) -> Shipped:
    """The net that validation prefers."""
    folder = Folder(path)
    config = reading.configuration_of(folder)
    job = preferred(path, method, seed)
    stage, copy = job.shipped()
    spec = opening.net_spec(config.data, config.net_of(stage.line))
    net = finished_net(folder.stage(stage.place), spec, stage.line, copy).to(device)
    name = f"{job.method} seed {job.seed}, {stage.title} {copy}"
    data = config.data
    return Shipped(net, spec, opening.classes(data), opening.palette(data), name, opening.longest(data))


def table(finished: Finished, job: JobResult, on: str) -> str:
    """The scores of the kept nets, and a row per class: recall of images, IoU of pixels."""
    scores, on = finished.score(job, on), finished.available(job, on)
    titles = {stage.net(copy): f"{stage.title} {copy}" for stage in job.kept() for copy in stage.copies}
    columns = [titles[net] for net in scores]
    first = next(iter(scores.values()))
    if first.iou is None:
        rows = {
            "accuracy": [score.accuracy for score in scores.values()],
            "fine-grained": [score.fine_grained for score in scores.values()],
        }
        title = f"{job.method}, seed {job.seed}, on {first.count:,} {on} images, %"
        per_class = [score.per_class for score in scores.values()]
    else:
        rows = {
            "mean IoU": [score.mean_iou or 0.0 for score in scores.values()],
            "pixel accuracy": [score.accuracy for score in scores.values()],
        }
        title = f"{job.method}, seed {job.seed}, on {first.count:,} {on} pixels, %; of each class its IoU"
        per_class = [score.iou or [] for score in scores.values()]
    for number, name in enumerate(finished.classes):
        rows[f"class {shown(name)}"] = [values[number] for values in per_class]
    text = tables.grid(title, columns, rows)
    missing = ", ".join(shown(finished.classes[label]) for label in first.absent or ())
    return f"{text}absent from these images, and left out of the mean: {missing}\n" if missing else text
