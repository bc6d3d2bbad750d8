"""Results of every stage and method of a run, read from its files alone."""

import contextlib
import itertools
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dmt import config as configuration
from dmt import files, presets, run_files
from dmt.config import Config
from dmt.core import early_end
from dmt.data.folders import photo_options
from dmt.errors import ConfigError, RunError
from dmt.results.job_results import JobResult
from dmt.results.stage_results import StageResult, liked, of_stage
from dmt.runs import identity, starting
from dmt.runs.folder import Folder, Job, plain, warnings_of
from dmt.tasks import opening
from dmt.tasks.pool import Pool
from dmt.training.checkpoint import Checkpoint


def configuration_of(folder: Folder) -> Config:
    """Return the configuration that a run was made with."""
    return _configuration(folder.manifest())


def _configuration(manifest: dict[str, Any]) -> Config:
    defaults = presets.get(manifest["data"]).config
    return configuration.override(defaults, configuration.recorded(defaults, manifest["config"]))


def read(folder: Folder) -> list[JobResult]:
    """Read all jobs of a run, finished or not."""
    manifest = folder.manifest()
    files.require_no_links(folder.path)
    jobs = [of_job(folder, manifest, job) for job in folder.jobs()]
    for stage in dict.fromkeys(stage.path for job in jobs for stage in job.stages if stage.outcome is None):
        if Checkpoint(stage).done and not folder.in_use:
            files.warn_once(
                "%s is trained, but its journal does not tell what came out; repeat the fit command to measure it",
                stage,
            )
    return jobs


def of_job(folder: Folder, manifest: dict[str, Any], job: Job) -> JobResult:
    """Read one job of a run."""
    changes = _changes(manifest["data"], manifest["config"])
    starts = {line: start["digest"] for line, start in manifest.get("starts", starting.RANDOM).items()}
    preset = presets.PRESETS.get(manifest["data"])
    if preset is not None and preset.start != "random" and "random" in starts.values():
        changes = (*changes, "start=random")  # the preset starts from published parameters
    origin = f"{starts} {manifest['images'] if manifest['data'] in presets.OWN else ''}"
    every = [(outline, each) for outline in job.stages for each in of_stage(folder, outline)]
    stages = tuple(each for outline, each in every if not outline.get(identity.BEFORE))
    before = tuple(each for outline, each in every if outline.get(identity.BEFORE))
    _require_alike(stages)
    result = JobResult(manifest["data"], job.method, job.seed, stages, tuple(job.results), changes, origin)
    shares = manifest["config"].get("share") is not None
    warnings = warnings_of(manifest) or ()
    search = manifest.get("search", {})
    folds, helps = tuple(search.get("lines", ())), search.get("helps")
    pool = Pool(manifest["pool"]["unlike"], tuple(manifest["pool"]["images"])) if "pool" in manifest else None
    result = replace(result, keep=job.keep, classes=_classes(manifest), shares=shares, warnings=warnings)
    result = replace(
        result, folds=folds, helps=helps, pool=pool, before=before, shortened=manifest.get("shortened", "")
    )
    patience = manifest["config"].get("stop_rounds")
    return result if patience is None else _by_validation(replace(result, patience=patience), patience)


def _require_alike(stages: Sequence[StageResult]) -> None:
    """Refuse stages of one job that were measured on different splits or classes: one of their files is damaged."""
    first: set[tuple[str, int]] | None = None
    for stage in stages:
        if stage.outcome is not None:
            measured = {
                (split, len(score.get("per_class", ())))
                for split, copies in stage.outcome["scores"].items()
                for score in copies.values()
            }
            if first not in (None, measured):
                path = stage.path / run_files.JOURNAL
                raise RunError(
                    f"{path} is damaged: its stage was not measured as the others of its job; "
                    f"restore it from a copy, or delete {stage.path} and repeat the fit command"
                )
            first = measured


def _by_validation(job: JobResult, patience: int) -> JobResult:
    """Apply early stopping: if validation has ended a job's rounds, its result is the best of them."""
    numbers = sorted({stage.round for stage in job.stages if stage.round and not stage.online})
    rounds = [[stage for stage in job.stages if stage.round == number] for number in numbers]
    done = list(itertools.takewhile(lambda each: all(stage.outcome is not None for stage in each), rounds))
    scores = [statistics.fmean(map(liked, each)) for each in done]
    count = early_end.end(scores, patience) or len(rounds)
    if not rounds or count > len(done):
        return job
    results = tuple(dict.fromkeys(stage.name for stage in rounds[early_end.best(scores[:count])]))
    skipped = tuple(stage for stage in job.stages if stage.round > numbers[count - 1])
    return replace(job, stages=job.stages[: len(job.stages) - len(skipped)], skipped=skipped, results=results)


def _changes(data: str, options: dict[str, Any]) -> tuple[str, ...]:
    """Return the options that differ from the preset, or all options if this release does not know the preset."""
    known, written = {}, configuration.renamed(options)
    if data in presets.PRESETS:
        preset = presets.PRESETS[data].config
        known = plain(configuration.flat(preset))
        with contextlib.suppress(ConfigError):  # if one of its options no longer exists, the recorded ones are compared
            written = plain(configuration.recorded(preset, options))
    told = frozenset(photo_options.COUNTED if data in presets.OWN else ())
    changed = {key: value for key, value in written.items() if key not in known or known[key] != value}
    return tuple(f"{key}={value}" for key, value in changed.items() if key not in told)


def _classes(manifest: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the classes; empty if this release does not know the data or its options."""
    try:
        options = _configuration(manifest).data
    except ConfigError:
        return ()
    return opening.classes(options)
