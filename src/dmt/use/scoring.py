"""Finished runs brought back to life: their nets, measured or ready for use."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import nn

from dmt.data.folders.photo_files import shown
from dmt.errors import ConfigError, RunError
from dmt.fitting import together
from dmt.fitting.together import Nets
from dmt.methods import catalogue
from dmt.models.build import NetSpec
from dmt.results import narrow_tables, reading, tables
from dmt.results.net_results import BOTH, NetResult
from dmt.results.reading import JobResult
from dmt.runs import progress
from dmt.runs.folder import Folder
from dmt.tasks import opening
from dmt.tasks.base import Task
from dmt.training import inference
from dmt.types import NetName

SPLITS = ("test", "validation")
LINES = ("A", "B", BOTH)


def choose(jobs: list[JobResult], method: str | None, seed: int | None) -> list[JobResult]:
    """The jobs asked for; all if nothing was."""
    chosen = [job for job in jobs if method in (None, job.method) and seed in (None, job.seed)]
    if not chosen:
        there = ", ".join(f"{job.method} with seed {job.seed}" for job in jobs) or "nothing"
        raise RunError(f"the run has no such method and seed; it has {there}")
    return chosen


class Finished:
    """A run's nets beside the data they were trained for.

    Args:
        unlabeled: open the unlabeled images of a user's folder too, which scores do not need.
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
        with progress.default() as watcher:
            read = opening.read if unlabeled else opening.read_labeled
            self._data = read(self.config.data, data_folder, notify, watcher.reading)
        if not self._data.is_of(manifest["images"]):
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

    def score(self, job: JobResult, on: str, line: str | None = None) -> dict[NetName, inference.Score]:
        """Scores of the kept nets by name, and of both nets of a pair together, computed now; of one line if given."""
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
            job.asked(line)  # refuses a line that is not there
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
        """Both nets together; a run that does not know yet what they come to is told."""
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
    """A run's net, or both nets of a pair as one, ready for use.

    Attributes:
        net: in eval mode, on the device. Two nets give the logarithm of the mean of their probabilities.
        spec: what it takes: images of one shape, or of any if it labels pixels.
        classes: their names.
        palette: their colors, of pixels.
        name: for people.
        longest: images whose longer side is more than this are made smaller, as in training.
        second: of two nets, what the second one is.
        note: what a user should know of it: what is not finished, why it is one net of a pair.
        trained_on: the folder of a user's images that the run was made for.
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
    """Of the jobs asked for the one validation prefers; of equals, as without any validation, the last but a Baseline
    or, where folds of the labels expect nothing from rounds, the Baseline.

    Between methods by plain accuracy or mean IoU: a fine-grained score is for nets that were trained alike.

    Args:
        line: jobs that have it come first.
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
    """The job that validation prefers, and of its nets the one asked for by its line; what ships if none was."""
    job = preferred(path, method, seed, line)
    return job, job.shipped() if line is None else job.asked(line)


def shipped_net(
    path: Path, method: str | None, seed: int | None, device: torch.device, line: str | None = None
) -> Shipped:
    """What a run ships: the net that validation prefers, of a pair both unless it objects; or what ``line`` asks for.

    Args:
        line: "A", "B" or "both".
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
    """What a user should know of what is used, if anything."""
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
    """Which of several methods is used and why, in words; None where there is but one beside the Baseline."""
    done = [each for each in reading.read(Folder(path)) if each.finished and not catalogue.get(each.method).baseline]
    others = [name for name in dict.fromkeys(each.method for each in done) if name != job.method]
    if not others or catalogue.get(job.method).baseline:
        return None
    measured = job.shipped().score("validation") is not None
    why = "validation prefers it" if measured else "without validation images the method trained last is taken"
    titles = ", ".join(catalogue.get(name).title for name in others)
    return f"{catalogue.get(job.method).title} is used, not {titles}: {why}; --method {others[0]} uses the other"


def _why_alone(job: JobResult) -> str | None:
    """Why a pair ships one net, in words; None if it does not."""
    if job.both is None and len(job.lines) > 1:
        alone = NetResult.of_one(*job.preferred())
        return (
            f"{alone.title} is used alone, since both nets together were not measured; "
            f"dmt score measures them, and --line both uses them in any case"
        )
    return job.objection


def require_line(line: str | None) -> None:
    """Refuse what is no line of nets."""
    if line is not None and line not in LINES:
        raise ConfigError(f"--line takes A, B or both, not '{line}'")


def table(finished: Finished, job: JobResult, on: str, line: str | None = None, width: int | None = None) -> str:
    """The scores of the kept nets, and a row per class: recall of images, IoU of pixels; then what ships.

    Args:
        width: columns of the terminal it is for; None for a file.
    """
    scores, on = finished.score(job, on, line), finished.available(job, on)
    job = replace(job)  # scoring may have written what both nets come to together
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
    if BOTH in columns:
        final = _why_alone(job) or f"final model: {job.shipped().title}"
        notes += f"{BOTH}: the mean of their probabilities\n{final}\n"
    return text + narrow_tables.sentences(notes, width)
