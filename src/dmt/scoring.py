"""Finished runs brought back to life: their nets, measured or ready for use."""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from dmt import config as configuration
from dmt import presets, report
from dmt.config import Config
from dmt.data import sets
from dmt.data.datasets import DATASETS
from dmt.errors import ConfigError, RunError
from dmt.folder import Folder
from dmt.report import JobResult
from dmt.tasks import classification
from dmt.training import inference
from dmt.training.checkpoint import finished_net

SPLITS = ("test", "validation")


def configuration_of(folder: Folder) -> Config:
    """The configuration a run was made with."""
    manifest = folder.manifest()
    return configuration.override(presets.get(manifest["data"]).config, manifest["config"])


def choose(jobs: list[JobResult], method: str | None, seed: int | None) -> list[JobResult]:
    """The jobs asked for; all if nothing was."""
    chosen = [job for job in jobs if method in (None, job.method) and seed in (None, job.seed)]
    if not chosen:
        there = ", ".join(f"{job.method} with seed {job.seed}" for job in jobs) or "nothing"
        raise RunError(f"the run holds no such method and seed; it has {there}")
    return chosen


class Finished:
    """A run's nets beside the data they were trained for."""

    def __init__(self, path: Path, data_folder: Path, device: torch.device, notify: Callable[[str], None]) -> None:
        self._folder, self._device = Folder(path), device
        self.config = configuration_of(self._folder)
        dataset = DATASETS[self.config.data.dataset]
        self.classes, self._images = dataset.classes, dataset.read(data_folder, notify)
        if sets.fingerprint(self._images) != self._folder.manifest()["images"]:
            raise RunError(f"{path} was made with other images than those in {data_folder}; give the same --data")
        self._jobs = list(report.Report.read([path]).jobs)

    def jobs(self, method: str | None, seed: int | None) -> list[JobResult]:
        return choose(self._jobs, method, seed)

    def score(self, job: JobResult, on: str) -> dict[tuple[str, str], inference.Score]:
        """Scores of the last stages, by (stage, raw or ema), computed now."""
        if on not in SPLITS:
            raise ConfigError(f"--on takes {' or '.join(SPLITS)}, not '{on}'")
        task, _ = classification.split_up(self.config.data, self._images, job.seed)
        images = task.test if on == "test" else task.validation
        if not len(images):
            raise ConfigError(f"the run has no {on} images; use --on test")
        if on == "validation" and job.method == "oracle":
            raise ConfigError("the Oracle was trained on the validation images; use --on test")
        scores = {}
        for stage in job.stages:
            for copy in ("raw", "ema") if stage.name in job.results else ():
                net = finished_net(self._folder.stage(stage.place), task.net_spec(self.config.net), copy).to(
                    self._device
                )
                scores[stage.name, copy] = inference.score(net, task, images, self._device)
        return scores


def shipped_net(
    path: Path, method: str | None, seed: int | None, device: torch.device
) -> tuple[nn.Module, tuple[int, int, int], tuple[str, ...], str]:
    """The net that validation prefers, with its input shape, its classes and a name for people."""
    folder = Folder(path)
    config = configuration_of(folder)
    dataset = DATASETS[config.data.dataset]
    jobs = [job for job in choose(list(report.Report.read([path]).jobs), method, seed) if job.finished]
    if not jobs:
        raise RunError(f"nothing in {path} is finished; repeat the fit command to finish it")
    job = max(jobs, key=lambda each: report.preference(*each.shipped()))
    stage, copy = job.shipped()
    spec = classification.net_spec(config.data.dataset, config.net)
    net = finished_net(folder.stage(stage.place), spec, copy).to(device)
    return net, dataset.shape, dataset.classes, f"{job.method} seed {job.seed}, {stage.name} {copy}"


def table(finished: Finished, job: JobResult, on: str) -> str:
    """Accuracy, fine-grained accuracy and a row per class, for the raw and the EMA net."""
    scores = finished.score(job, on)
    columns = [f"{stage} {copy}" for stage, copy in scores]
    rows = {
        "accuracy": [score.accuracy for score in scores.values()],
        "fine-grained": [score.fine_grained for score in scores.values()],
    }
    for number, name in enumerate(finished.classes):
        rows[f"class {name}"] = [score.per_class[number] for score in scores.values()]
    count = next(iter(scores.values())).count
    return report.grid(f"{job.method}, seed {job.seed}, on {count:,} {on} images, %", columns, rows)
