"""Tuning: several settings of one method, each trained in a run of its own, judged on validation images alone."""

import contextlib
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from dmt import config as configuration
from dmt import files, presets, run_files, schemas
from dmt.config import Config
from dmt.core.evidence import Evidence
from dmt.errors import ConfigError, DivergenceError, RunError
from dmt.fitting import folder_policy, request
from dmt.methods import catalogue
from dmt.own import choosing, planning, precheck
from dmt.own.known_nets import Asked
from dmt.results import guard_rules
from dmt.results.report import JobResult, Report
from dmt.runs import environment, joining, progress
from dmt.runs.folder import Folder
from dmt.runs.stopping import Stop, Stopped
from dmt.tuning import judging, search_space, trial_orders
from dmt.tuning.outcome import DEFAULT, FINE, MEAN_IOU, Trial, Tuning
from dmt.tuning.outcome import plain as plain_trial
from dmt.tuning.search_space import Space, Values
from dmt.tuning.trial_folder import INDEX, Frame
from dmt.tuning.trial_orders import TrialTraining
from dmt.tuning.trial_progress import Trials
from dmt.workers import crew
from dmt.workers.crew import Crew


def tune(
    data: str | Path,
    *,
    out: str | Path,
    grid: Mapping[str, Any] | None = None,
    search: str = "grid",
    trials: int | None = None,
    method: str = "dmt",
    seed: int | Iterable[int] = 1,
    settings: Mapping[str, Any] | None = None,
    start: str | Path | Mapping[str, str | Path] | None = None,
    data_folder: str | Path = "data",
    device: str | torch.device = "auto",
    budget: float | None = None,
    watcher: progress.Watcher | None = None,
    anyway: bool = False,
    jobs: int | None = None,
    on: str | None = None,
) -> Tuning:
    """Try settings of a method and say which to use; the default is kept unless another is clearly better.

    Repeating the call resumes where it stopped; values, trials or seeds may be added then.

    Args:
        data, method, seed, start, data_folder, device: as in `fit`.
        out: a folder for all trials; each becomes a run folder in its ``trials/``.
        grid: option -> values to try, ``{"gamma": [1, 3, 5]}``, or text as in the command; by default the paper's γ.
        search: "grid" tries every combination; "optuna" samples ``trials`` settings, also from ranges ("0.01..0.3").
        settings: options that all trials have in common; the default is the preset with these options.
        budget: stop cleanly after so many seconds; schedules are not changed.
        watcher: receives progress; by default bars on a terminal, lines elsewhere.
        anyway: as in `fit`.
        jobs, on: as in `fit`. The default comes first, its stages at once; then several trials of a grid at once.

    Raises:
        DmtError: for anything that the caller can correct; `Stopped` when stopped by budget or signal.
    """
    if joining.launched():
        raise ConfigError("dmt tune takes one process; start it without torchrun")
    place, folder = request.folder("out", out), request.folder("data_folder", data_folder)
    request.require_switches(anyway=anyway)
    stop = Stop(budget)
    workers, data, wanted = crew.of(jobs, on), request.data(data), request.device(device)
    seeds, given = request.several(seed), request.by_line(start)
    common, config, notes = _default(data, configuration.given(settings or {}), given, wanted)
    space = search_space.default(config) if not grid else search_space.parse(grid)
    search_space.require_search(search, trials)
    _require_sense(space, config, method, search)
    if not seeds:
        raise ConfigError("nothing to train: give at least one seed")
    frame = Frame(data, place, method, seeds, common, given, str(folder), wanted, anyway)
    _require_sound(frame, watcher)
    with (
        watcher or progress.default() as watching,
        frame.claimed(config),
        contextlib.nullcontext() if workers is None else workers.connected(),
    ):
        for line in notes:
            watching.note(line)
        tuner = _Tuner(frame, config, space, stop, watching)
        tuner.crew = workers
        tuner.search(trials if search == "optuna" else None)
        return tuner.conclude()


def _default(
    data: str | Path, settings: dict[str, Any], starts: Mapping[str, str], device: str
) -> tuple[dict[str, Any], Config, tuple[str, ...]]:
    """Return the settings of all trials, the configuration to tune, and lines about how it was chosen.

    It must have validation images: for a user's folder without any, some labels are held out.
    """
    own = folder_policy.own_folder(data)
    notes: tuple[str, ...] = ()
    if own is None:
        config = configuration.override(presets.get(str(data)).config, settings)
        judges = config.data.validation
    else:
        setup = choosing.choose(own, environment.pick_device(device), Asked.of(settings, starts))
        lines = setup.lines
        count = choosing.judges(setup.contents)
        if count and not setup.preset.config.data.validation and "validation" not in settings:
            settings = {**settings, "validation": count}
            lines = tuple(line for line in lines if not line.startswith("validation="))
            lines = (*lines, choosing.holding_out(setup.contents, count, " to compare settings on"))
        config = choosing.override(setup.preset.config, settings)
        notes = (*setup.contents.notes, *lines)
        judges = len(setup.contents.validation) or planning.validation_images(config)
    if not judges:
        where = "give --set validation=N" + ("" if own is None else f", or put images into {own / 'val'}")
        raise ConfigError(f"there are no validation images to compare settings on; {where}")
    if judges < guard_rules.FEW:
        where = "set validation higher" if own is None else f"put {guard_rules.FEW} or more into {own / 'val'}"
        few = f"{judges} validation images are too few to choose by, so the default will be kept whatever is found"
        notes = (*notes, f"warning: {few}; {where}")
    return settings, config, notes


def _require_sound(frame: Frame, watcher: progress.Watcher | None) -> None:
    """Refuse images with errors before a new tuning is bound to them; with ``anyway``, the trials report the errors."""
    own = folder_policy.own_folder(frame.data)
    if own is not None and not frame.anyway and not (frame.out / INDEX).is_file():
        precheck.require_none(own, precheck.check(own, watcher).errors)


def _require_sense(space: Space, config: Config, method: str, search: str) -> None:
    if not isinstance(method, str):
        raise ConfigError(f"one method is tuned at a time: give its name, not {method!r}")
    entry = catalogue.get(method)
    if entry.ceiling:
        raise ConfigError(
            f"the {entry.title} is trained on the validation images too, so it cannot be tuned; tune another method"
        )
    search_space.require_sense(space, config, method)
    for values in search_space.grid(space) if search == "grid" else ():
        configuration.override(config, values)


class _Tuner:
    """Trains each trial once, and judges them all."""

    def __init__(self, frame: Frame, config: Config, space: Space, stop: Stop, watcher: progress.Watcher) -> None:
        self._frame, self._config, self._space, self._stop, self._watcher = frame, config, space, stop, watcher
        self._known: dict[str, Any] = files.read_json(frame.out / INDEX, schemas.TUNING)
        options = configuration.flat(config)
        self._default: Values = {key: options[key] for key in space}
        self._trials: dict[str, Trial] = {}
        self._evidence: dict[str, list[Evidence]] = {}
        self._places: set[str] = set()  # stages that the trials so far have trained
        self._watching = Trials(watcher, 0)
        self._images: str | None = None  # fingerprint: only trials on the same images can be compared
        self._worked = False
        self.crew: Crew | None = None  # workers that train; None for this process alone
        self._failures: dict[str, str] = {}  # of trials that were trained at once

    @property
    def _fine(self) -> bool:
        return not self._config.data.sizes.pixels

    def search(self, draws: int | None) -> None:
        """Train and judge the default, then every point of the grid, or ``draws`` points sampled by Optuna."""
        points = [] if draws is not None else [each for each in search_space.grid(self._space) if each != self._default]
        self._watching = Trials(self._watcher, 1 + (draws or len(points)))
        self.score(self._default)
        if self.crew is not None:
            self._train_at_once(self.crew, points)
        for values in points:
            self.score(values)
        if draws is not None:
            search_space.optuna(self._space, draws, self.score, self._frame.seeds[0])

    def score(self, values: Values) -> float | None:
        """Return the score of a point, after training it if it is new; None if it could not be trained."""
        name = DEFAULT if values == self._default else search_space.name(values)
        if name not in self._trials:
            folder = self._frame.place(name)
            self._watching.trial(name)
            failed = self._failure(name) or self._failures.get(name) or self._train(values, folder)
            self._trials[name] = self._read(Trial(name, values, folder, None, failed=failed))
            self._remember()
        return self._trials[name].score

    def _failure(self, name: str) -> str | None:
        """Return why a trial failed in an earlier session with the same seeds, since it would fail again, or None."""
        known: Mapping[str, Any] = next((each for each in self._known["trials"] if each["name"] == name), {})
        failed: str | None = known.get("failed") if self._known.get("seeds") == list(self._frame.seeds) else None
        return failed

    def _train_at_once(self, workers: Crew, points: Sequence[Values]) -> None:
        """Train what is left of some trials at once. The default was trained before: stages can be shared with it."""
        names = {search_space.name(values): values for values in points}
        left = {
            name: (values, self._frame.place(name))
            for name, values in names.items()
            if self._failure(name) is None and not self._trained(self._frame.place(name))
        }
        if left and self._worked and self._stop():
            self._leave(self._stop.error())
        threads = Folder(self._trials[DEFAULT].folder).manifest()["threads"]
        training = TrialTraining(self._frame, workers, threads)
        donors = [trial.folder for trial in self._trials.values()]
        try:
            with self._stop.on_signals():
                self._failures = training.train(left, donors, (self._watcher, self._stop))
        except Stopped as stopped:
            self._leave(stopped)

    def _trained(self, folder: Path) -> bool:
        return all(job is not None and trial_orders.complete(job) for job in self._jobs(folder))

    def _train(self, values: Values, folder: Path) -> str | None:
        """Train a trial's run, or what is left of it; return why it failed, or None."""
        if self._trained(folder):
            return None
        if self._worked and self._stop():
            self._leave(self._stop.error())
        self._worked = True
        donors = [trial.folder for trial in self._trials.values()]
        try:
            trial_orders.train(self._frame, values, donors, folder, (self._watching, self._stop), self.crew)
        except DivergenceError as error:
            return str(error)
        except Stopped as stopped:
            self._leave(stopped)
        return None

    def _leave(self, stopped: Stopped) -> None:
        self._watcher.note(f"{len(self._trials)} trials are finished")
        raise stopped

    def _jobs(self, folder: Path) -> list[JobResult | None]:
        """Return the job of each seed in a trial's run folder; None for a job that was not begun."""
        if not (folder / run_files.MANIFEST).is_file():
            return [None]
        jobs = {(job.method, job.seed): job for job in Report.read([folder]).jobs}
        return [jobs.get((self._frame.method, seed)) for seed in self._frame.seeds]

    def _read(self, trial: Trial) -> Trial:
        """Return a trial with its score and cost, read from its run folder."""
        if trial.failed is not None:
            self._watcher.note(f"{trial.name}: failed, {trial.failed}")
            return trial
        self._require_images(trial)
        jobs = [job for job in self._jobs(trial.folder) if job is not None]
        stages = {
            stage.place: stage.outcome["cost"].get("seconds", 0.0)
            for job in jobs
            for stage in job.stages
            if stage.outcome
        }
        new = {place: seconds for place, seconds in stages.items() if place not in self._places}
        self._places |= set(new)
        self._evidence[trial.name] = nets = [_said(trial, job) for job in jobs]
        score = statistics.fmean(net.fine_grained() if self._fine else net.score() for net in nets)
        self._watcher.note(f"{trial.name}: validation {self._judged_by} {score:.2f}")
        spent, saved = sum(new.values()), sum(stages.values()) - sum(new.values())
        return replace(trial, score=score, trained=len(new), shared=len(stages) - len(new), seconds=spent, saved=saved)

    def _require_images(self, trial: Trial) -> None:
        images = Folder(trial.folder).manifest()["images"]
        if self._images not in (None, images):
            raise RunError(f"the images have changed since {self._frame.out} began; give another --out")
        self._images = images

    @property
    def _judged_by(self) -> str:
        return FINE if self._fine else MEAN_IOU

    def _remember(self) -> None:
        """Store every trial, also those of an earlier session that this one has not come to yet."""
        trials = {trial["name"]: trial for trial in self._known["trials"]}
        trials |= {name: plain_trial(trial) for name, trial in self._trials.items()}
        files.write_json(self._frame.out / INDEX, self._head() | {"trials": list(trials.values())})

    def _head(self) -> dict[str, Any]:
        return self._frame.head(self._config) | {"seeds": list(self._frame.seeds)}

    def conclude(self) -> Tuning:
        """Compare the trials, and store the result."""
        trials = tuple(self._trials.values())
        judged = [self._evidence[trial.name] for trial in trials if trial.failed is None]
        if not judged:
            raise RunError(f"no trial could be trained, the first because: {trials[0].failed}")
        default = 0 if trials[0].failed is None else None
        verdict = judging.judge(judged, self._fine, default)
        frame = self._frame
        facts = (self._judged_by, judged[0][0].images, len(frame.seeds), frame.settings, frame.command())
        tuning = Tuning(trials, verdict, *facts, warnings=Folder(trials[0].folder).warnings() or ())
        files.write_json(frame.out / INDEX, self._head() | tuning.as_json())
        return tuning


def _said(trial: Trial, job: JobResult) -> Evidence:
    """Return the predictions of a job's final model on the validation images."""
    found = job.shipped().evidence("validation")
    if found is None or not found.images:
        raise RunError(f"{trial.folder} lacks its net's predictions on the validation images; delete it, and repeat")
    if math.isnan(found.score()):
        raise RunError("no validation image has a labeled pixel to compare settings on; label some of their pixels")
    return found
