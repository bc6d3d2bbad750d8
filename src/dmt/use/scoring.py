"""Nets of finished runs, loaded to be scored or to be used."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import nn

from dmt.data.folders.photo_files import shown
from dmt.errors import ConfigError, OtherClassesError, RunError
from dmt.fitting import together
from dmt.fitting.together import Nets
from dmt.methods import catalogue
from dmt.models.build import NetSpec
from dmt.results import narrow_tables, reading, tables
from dmt.results.job_results import JobResult
from dmt.results.net_results import BOTH, NetResult
from dmt.runs import progress
from dmt.runs.folder import Folder
from dmt.tasks import opening
from dmt.tasks.base import Task
from dmt.training import inference
from dmt.types import NetName

SPLITS = ("test", "validation")
LINES = ("A", "B", BOTH)
_GIVE_DATA = "give the folder of its images with --data"


def choose(jobs: list[JobResult], method: str | None, seed: int | None) -> list[JobResult]:
    """Return the jobs with this method and seed; None stands for any."""
    chosen = [job for job in jobs if method in (None, job.method) and seed in (None, job.seed)]
    if not chosen:
        there = ", ".join(f"{job.method} with seed {job.seed}" for job in jobs) or "nothing"
        raise RunError(f"the run has no such method and seed; it has {there}")
    return chosen


class Finished:
    """A run's nets, with the data they were trained on.

    Args:
        path: the run folder.
        data_folder: folder of the data; by default the one that the run was trained on, else ``data``.
        device: device to compute on.
        notify: is called with a line about anything unusual.
        unlabeled: also open the unlabeled images of a user's folder, which scoring does not need.
    """

    def __init__(
        self,
        path: Path,
        data_folder: Path | None,
        device: torch.device,
        notify: Callable[[str], None],
        *,
        unlabeled: bool = False,
    ) -> None:
        self._folder, self._device, self._notify = Folder(path), device, notify
        self.config = reading.configuration_of(self._folder)
        self.classes = opening.classes(self.config.data)
        manifest = self._folder.manifest()
        if data_folder is None:
            data_folder = Path(manifest.get("folder") or "data")
        if manifest.get("folder") and not data_folder.is_dir():
            raise RunError(f"there is no folder {data_folder} with the images of {path}; {_GIVE_DATA}")
        with progress.default() as watcher:
            read = opening.read if unlabeled else opening.read_labeled
            try:
                self._data = read(self.config.data, data_folder, notify, watcher.reading)
            except OtherClassesError as error:
                raise RunError(f"{path}: {error}; {_GIVE_DATA}") from error
        if not self._data.is_of(manifest["images"]):
            raise RunError(f"{path} was made with other images than those in {data_folder}; {_GIVE_DATA}")
        self._jobs = reading.read(self._folder)

    def jobs(self, method: str | None, seed: int | None) -> list[JobResult]:
        return choose(self._jobs, method, seed)

    def task(self, seed: int) -> Task:
        """Return the data as split for a seed."""
        return self._data.split(seed)[0]

    def available(self, job: JobResult, on: str) -> str:
        """Return the split to score: the one asked for, or validation in place of a test split without images."""
        return "validation" if on == "test" and not len(self._data.split(job.seed)[0].test) else on

    def score(self, job: JobResult, on: str, line: str | None = None) -> dict[NetName, inference.Score]:
        """Compute the scores of the kept nets, and of a pair as one, by name; with ``line``, only those asked for."""
        if on not in SPLITS:
            raise ConfigError(f"--on takes {' or '.join(SPLITS)}, not '{on}'")
        require_line(line)
        task, _ = self._data.split(job.seed)
        on = self.available(job, on)
        images = task.test if on == "test" else task.validation
        if not len(images):
            raise ConfigError(f"the run has no {on} images; put some into test/ or val/ of its data")
        if on == "validation" and catalogue.get(job.method).ceiling:
            raise ConfigError(
                f"the {catalogue.get(job.method).title} was trained on the validation images; use --on test"
            )
        if line is not None:
            job.asked(line)  # raises if the job has no such line
        scores = {}
        for stage in job.kept():
            for copy in stage.copies if line in (None, stage.line) else ():
                net = Nets(((stage, copy),), task, self.config, self._device).load()
                scores[stage.net(copy)] = inference.score(net, task, images, self._device)
        nets = job.pair() if line in (None, BOTH) else ()
        if nets:
            scores[job.asked(BOTH).name] = self._score_pair(job, Nets(nets, task, self.config, self._device), on)
        return scores

    def _score_pair(self, job: JobResult, pair: Nets, on: str) -> inference.Score:
        """Score both nets together, and store the scores in the run if it does not have them yet."""
        images = pair.task.test if on == "test" else pair.task.validation
        with progress.default() as watcher:
            tell = partial(watcher.busy, "both nets")
            if job.both is not None:
                return inference.score_with_evidence(pair.load(), pair.task, images, self._device, tell)[0]
            measured = together.measure(pair, tell)
        try:
            with self._folder.locked():
                measured.write()
        except (RunError, OSError) as error:
            self._notify(f"note: the scores of both nets together could not be kept in the run ({error})")
        return measured.scores[on]


@dataclass(frozen=True)
class Shipped:
    """A run's final model, one net or both nets of a pair as one, ready for use.

    Attributes:
        net: the net, in eval mode and on the device. Two nets output the logarithm of their mean probabilities.
        spec: what the net takes: images of one shape or, for segmentation, of any size.
        classes: names of the classes.
        palette: colors of the classes, for segmentation.
        name: where the net comes from, in words.
        longest: images with a longer side above this many pixels are shrunk, as in training; None for no limit.
        second: specification of the second net of a pair.
        note: what a user should know: jobs that are not finished, why one net of a pair is used alone.
        trained_on: the user's folder of images that the run was trained on.
    """

    net: nn.Module
    spec: NetSpec
    classes: tuple[str, ...]
    palette: tuple[tuple[int, int, int], ...]
    name: str
    longest: int | None = None
    second: NetSpec | None = None
    note: str | None = None
    trained_on: Path | None = None


def preferred(path: Path, method: str | None, seed: int | None, line: str | None = None) -> JobResult:
    """Return the finished job that validation prefers among those asked for.

    In case of a tie, as without validation images, it is the last job that is no Baseline or, if cross-validation on
    the labels predicted no gain from rounds, the Baseline. Jobs are compared by plain accuracy or mean IoU:
    fine-grained accuracy is only for nets that were trained alike.

    Args:
        path: the run folder.
        method: method of the job; None for any.
        seed: seed of the job; None for any.
        line: jobs that have this line are preferred to those that do not.
    """
    require_line(line)

    def liked(job: JobResult) -> tuple[bool, float, bool]:
        score = job.shipped().score("validation")
        known = float("-inf") if score is None else score
        usual = catalogue.get(job.method).baseline is job.doubted
        return line is None or job.has_line(line), known, usual

    jobs = [job for job in choose(reading.read(Folder(path)), method, seed) if job.finished]
    if not jobs:
        raise RunError(f"nothing in {path} is finished; repeat the fit command to finish it")
    return max(reversed(jobs), key=liked)


def chosen(path: Path, method: str | None, seed: int | None, line: str | None) -> tuple[JobResult, NetResult]:
    """Return the preferred job, and its final model or, with ``line``, the net or pair of nets asked for."""
    job = preferred(path, method, seed, line)
    return job, job.shipped() if line is None else job.asked(line)


def shipped_net(
    path: Path, method: str | None, seed: int | None, device: torch.device, line: str | None = None
) -> Shipped:
    """Load a run's final model: the net that validation prefers, or both of a pair unless one is clearly better.

    Args:
        path: the run folder.
        method: method to use; None for any.
        seed: seed to use; None for any.
        device: device to load the net to.
        line: "A", "B" or "both", to choose among the nets of a pair.
    """
    job, found = chosen(path, method, seed, line)
    config, folder = reading.configuration_of(Folder(path)), Folder(path).manifest().get("folder")
    data = config.data

    def spec_of(line: str) -> NetSpec:
        return opening.net_spec(data, config.net_of(line))

    first, *others = [spec_of(stage.line) for stage, _ in found.nets]
    return Shipped(
        together.load(found.nets, spec_of, device),
        first,
        opening.classes(data),
        opening.palette(data),
        f"{job.method} seed {job.seed}, {found.title}",
        opening.longest(data),
        second=others[0] if others else None,
        note=_note(path, job, method, seed, line),
        trained_on=None if folder is None else Path(folder),
    )


def _note(path: Path, job: JobResult, method: str | None, seed: int | None, line: str | None) -> str | None:
    """Return what a user should know about the model that is used, or None."""
    unfinished = [each for each in choose(reading.read(Folder(path)), method, seed) if not each.finished]
    waiting = ", ".join(f"{catalogue.get(each.method).title} with seed {each.seed}" for each in unfinished)
    notes = [
        f"{waiting} is not finished (repeat the fit command to finish); {catalogue.get(job.method).title} is used"
        if unfinished
        else None,
        of_several(path, job) if method is None else None,
        _why_alone(job) if line is None else None,
    ]
    return "; ".join(note for note in notes if note) or None


def of_several(path: Path, job: JobResult) -> str | None:
    """Return in words which of several methods is used, and why; None for the only one beside a Baseline."""
    done = [each for each in reading.read(Folder(path)) if each.finished and not catalogue.get(each.method).baseline]
    others = [name for name in dict.fromkeys(each.method for each in done) if name != job.method]
    if not others:
        return None
    why = "without validation images the method trained last is taken"
    if job.shipped().score("validation") is not None:
        why = "validation prefers it"
    elif job.doubted:
        why = "cross-validation predicts no gain from rounds"
    titles, names = _either([catalogue.get(name).title for name in others]), _either(others)
    other = "the other" if len(others) == 1 else "another"
    return f"{catalogue.get(job.method).title} is used, not {titles}: {why}; --method {names} uses {other}"


def _either(names: Sequence[str]) -> str:
    """Return names as in "A, B or C"."""
    *before, last = names
    return f"{', '.join(before)} or {last}" if before else last


def _why_alone(job: JobResult) -> str | None:
    """Return in words why one net of a pair is used alone; None if that is not the case."""
    if job.both is None and len(job.lines) > 1:
        alone = NetResult.of_one(*job.preferred())
        return (
            f"{alone.title} is used alone, since both nets together were not measured; "
            f"dmt score measures them, and --line both uses them in any case"
        )
    return job.objection


def require_line(line: str | None) -> None:
    """Refuse a name that is no line of nets."""
    if line is not None and line not in LINES:
        raise ConfigError(f"--line takes A, B or both, not '{line}'")


def table(finished: Finished, job: JobResult, on: str, line: str | None = None, width: int | None = None) -> str:
    """Return a table of the scores of the kept nets, overall and per class (recall, or IoU), and the final model.

    Args:
        finished: the run.
        job: the job to score.
        on: "test" or "validation".
        line: "A", "B" or "both" of a pair; None for all.
        width: columns of the terminal it is for; None for a file.
    """
    scores, on = finished.score(job, on, line), finished.available(job, on)
    job = replace(job)  # without cached properties: scoring may just have stored the scores of the pair
    titles = {stage.net(copy): f"{stage.title} {copy}" for stage in job.kept() for copy in stage.copies}
    columns = [titles.get(net, BOTH) for net in scores]
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
    text = tables.grid(title, columns, rows, width)
    missing = ", ".join(shown(finished.classes[label]) for label in first.absent or ())
    notes = f"absent from these images, and left out of the mean: {missing}\n" if missing else ""
    if first.iou is None:
        notes += "fine-grained: each right answer counts as the confidence in it\n"
    if BOTH in columns:
        final = _why_alone(job) or f"final model: {job.shipped().title}"
        notes += f"{BOTH}: the mean of their probabilities\n{final}\n"
    return text + narrow_tables.sentences(notes, width)
