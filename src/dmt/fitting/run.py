"""A run: methods × seeds, as stages trained once each, in one folder that can be stopped, moved and gone on with."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

from dmt import config as configuration
from dmt import presets, run_files
from dmt.config import Config
from dmt.core.execution import Execution
from dmt.data.folders import photos
from dmt.errors import ConfigError, RunError
from dmt.fitting.runner import Conditions, Runner
from dmt.methods import catalogue
from dmt.methods.method import Labeled, Method
from dmt.own import choosing, planning, precheck
from dmt.own.choosing import Asked
from dmt.presets import Preset
from dmt.results import reading
from dmt.results.report import Report
from dmt.runs import environment, progress, starting
from dmt.runs.folder import Folder
from dmt.runs.stopping import Stop

OWN = ("photos", "photo-masks")
"""Presets that stand for a folder of a user's images; as an argument these are names of folders."""


def fit(
    data: str | Path,
    *,
    out: str | Path,
    method: str | Sequence[str] | None = None,
    baseline: bool = True,
    keep: str | None = None,
    seed: int | Iterable[int] = 1,
    settings: Mapping[str, Any] | None = None,
    start: str | Mapping[str, str] | None = None,
    data_folder: str | Path = "data",
    device: str = "auto",
    fast: bool | None = None,
    budget: float | None = None,
    checkpoint_every: float = 30.0,
    watcher: progress.Watcher | None = None,
    stop: Stop | None = None,
    donors: Sequence[Path] = (),
    anyway: bool = False,
) -> Report:
    """Train one or more methods on a data set and report what came out.

    Repeating the call resumes where it stopped: finished stages are skipped, an interrupted one continues, and the
    result equals that of an unbroken run. Stages that several methods have in common are trained once.

    Args:
        data: a folder of your own images, or a preset, e.g. "digits", "cifar10-4k" or "voc-1of20".
        out: the run's folder; nothing is written elsewhere.
        method: one or more of `dmt list`; "dmt" by default.
        baseline: train a Baseline too wherever pseudo labels teach, so that the gain is known. It shares its stages
            with the other methods and costs nothing, but with ``share``: then it is two trainings more.
        keep: which nets of a method to use: of the "last" round, or of the "best" by validation. As it was for a run
            that is resumed, and else the last. It may be changed at any time.
        seed: one or more; a seed decides the split and every random number.
        settings: options that differ from the preset, by key, e.g. ``{"gamma": 5.0, "online.threshold": 0.95}``.
        start: what fresh nets start from: "random", "timm", "wheel" or a file, or these by line, ``{"A": …, "B": …}``.
        data_folder: where a data set that is not embedded lies.
        device: "auto", "cpu", "cuda" or "cuda:N".
        fast: compile steps and, on CUDA, record them as a graph; by default on CUDA only.
        budget: stop cleanly after so many seconds. A new run on your images gets a schedule that fits.
        checkpoint_every: seconds between checkpoints within a stage.
        watcher: hears of progress; bars or lines by default.
        stop: several runs may share one; a budget of its own changes no schedule.
        donors: run folders whose finished stages are taken over where this run would train the same.
        anyway: train on a folder though `dmt check` finds errors in it; the run and its reports then say so.

    Raises:
        DmtError: for whatever the caller can mend; `Stopped` when stopped by budget or signal.
    """
    ending = stop or Stop(budget)  # from here on time counts
    execution = environment.pick_execution(device, fast)
    folder = Folder(Path(out))
    folder.require_ours()
    own = own_folder(data)
    changed = configuration.dotted(settings or {})
    given = starting.parse([start]) if isinstance(start, str) else dict(start or {})
    asked = Asked.of(changed, given)
    preset, notes = (presets.get(str(data)), ()) if own is None else _chosen(own, folder, execution, asked)
    warnings = () if own is None else _checked(own, folder, watcher, anyway)
    if own is not None and budget is not None and _is_run(folder):  # it was fitted to a budget when it was new
        changed = {key: value for key, value in changed.items() if key not in planning.SHORTENED}
    config = configuration.override(preset.config, changed)
    if notes and changed:
        notes = (*notes, "you set instead: " + ", ".join(f"{key}={value}" for key, value in changed.items()))
    methods = _methods(method, baseline, own, config)
    seeds = [int(seed)] if isinstance(seed, Integral) else [int(each) for each in dict.fromkeys(seed)]  # type: ignore[arg-type]
    _require_sense(config, methods, own)
    if own is not None and budget is not None and methods and not _is_run(folder):
        config, fitted = _fitted(config, own, execution, ending, methods)
        notes = (*notes, *fitted)
    if keep not in (None, "best", "last"):
        raise ConfigError(f"keep takes best or last, not '{keep}'")
    if not checkpoint_every >= 0:
        raise ConfigError(f"checkpoint_every must be 0 seconds or more, not {checkpoint_every}")
    if not methods or not seeds:
        raise ConfigError("nothing to train: give at least one method and one seed")
    starts = starting.find(given, config, preset.start, folder.starts())
    with watcher or progress.default() as watching:
        for line in (*notes, *(f"warning: {each}" for each in warnings)):
            watching.note(line)
        conditions = Conditions(own or Path(data_folder), execution, checkpoint_every, ending, watching, donors)
        runner = Runner(config, folder, starts, conditions)
        runner.open(seeds)  # data and nets are tried before the folder is bound to a configuration
        if keep == "best" and not runner.validated:
            raise ConfigError("--keep best needs validation images; put some into val/, or set validation above 0")
        head: dict[str, Any] = {
            "data": preset.name,
            "folder": None if own is None else str(own.resolve()),
            "config": configuration.flat(config),
            "images": runner.fingerprint,
            "starts": starts.known,
            "threads": environment.fitting_threads(runner.threads_for),
        }
        if own is not None:
            head["warnings"] = warnings
        with (
            conditions.stop.on_signals(),
            folder.claimed(head) as manifest,
            environment.threads(manifest["threads"]),
            execution.active(),
        ):
            folder.log_session(environment.describe(execution.device))
            runner.run(methods, seeds, keep)
    return Report.read([out])


def _methods(method: str | Sequence[str] | None, baseline: bool, own: Path | None, config: Config) -> list[str]:
    """What to train: the methods asked for, and a Baseline that they are compared with."""
    beside, usual = catalogue.baseline().name, catalogue.default().name
    if method is None and own is not None:
        method = beside if not config.data.sizes.unlabeled else [beside, usual] if baseline else usual
    method = usual if method is None else method
    methods = [method] if isinstance(method, str) else list(dict.fromkeys(method))
    return catalogue.with_baseline(methods) if baseline else methods


def _is_run(folder: Folder) -> bool:
    return (folder.path / run_files.MANIFEST).is_file()


def _checked(own: Path, folder: Folder, watcher: progress.Watcher | None, anyway: bool) -> tuple[str, ...]:
    """The doctor's errors, looked for once in the life of a run: a new one with any is refused unless ``anyway``.

    A run from before there was this check goes on, and from then on says what is wrong.
    """
    if _is_run(folder) and (known := folder.warnings()) is not None:
        return known
    found = precheck.errors(own, watcher)
    if not (anyway or _is_run(folder)):
        precheck.require_none(own, found)
    return found


def _fitted(
    config: Config, own: Path, execution: Execution, ending: Stop, methods: Sequence[str]
) -> tuple[Config, tuple[str, ...]]:
    """A schedule for these methods and for what a rehearsal leaves of the time."""
    contents = photos.open_folder(own)
    rates = planning.rehearse(config, contents, execution, methods)
    return planning.within(config, contents, rates, ending.left, methods)


def own_folder(data: str | Path) -> Path | None:
    """The folder of images that ``data`` names; None if it names a preset."""
    own = isinstance(data, Path) or data in OWN
    if not own and data in presets.PRESETS:
        return None
    path = Path(data)
    if path.is_dir():
        return path
    if path.is_file():
        raise ConfigError(f"{path} is a file; give the folder that holds the images")
    if own or "/" in str(data) or "." in str(data):
        raise ConfigError(f"there is no folder {path}; give a folder of images, or a data set of dmt list")
    return None


def _chosen(own: Path, folder: Folder, execution: Execution, asked: Asked) -> tuple[Preset, tuple[str, ...]]:
    """What was chosen for a user's folder: now, or when the run to resume was made."""
    if not _is_run(folder):
        setup = choosing.choose(own, execution.device, asked)
        return setup.preset, (*setup.contents.notes, *setup.lines)
    known = presets.get(folder.manifest()["data"])
    if known.name not in presets.OWN:
        raise RunError(f"{folder.path} was made for '{known.name}', not for your images; give another --out")
    return replace(known, config=reading.configuration_of(folder)), ()


def _require_sense(config: Config, methods: Sequence[str], own: Path | None) -> None:
    """Refuse what cannot mean anything, before anything is written."""
    if config.data.sizes.pixels and not config.recipe.per_class:
        raise ConfigError("pixels are ranked within each class; leave per_class=true")
    for method in map(catalogue.get, methods):
        _require_fitting(method, config, own)
        method.plan(config.recipe)  # it may have options that mean nothing


def _require_fitting(method: Method, config: Config, own: Path | None) -> None:
    """Refuse a method that these data cannot be given to."""
    what: Labeled = "pixels" if config.data.sizes.pixels else "images"
    if what not in method.serves:
        raise ConfigError(f"{method.title} labels {method.serves[0]}, and here {what} get labels; see dmt list methods")
    if own is not None and method.ceiling:
        raise ConfigError(f"the {method.title} needs the labels of all images, which are unknown here; leave it out")
    if not config.data.sizes.unlabeled and method.semi_supervised:
        alone = catalogue.baseline().name
        raise ConfigError(f"there are no unlabeled images to learn from; add some, or use --method {alone}")
