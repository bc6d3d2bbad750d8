"""A run: methods × seeds as stages that are trained once each, in a folder; it can be stopped, moved and resumed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import torch

from dmt import config as configuration
from dmt import presets
from dmt.errors import ConfigError
from dmt.fitting import folder_policy, helping, options_read, orders, request, searching, stages_at_once
from dmt.fitting.conditions import Conditions
from dmt.fitting.orders import Open
from dmt.fitting.request import Prepared, Request
from dmt.fitting.runner import Runner
from dmt.fitting.session import Session
from dmt.methods import catalogue
from dmt.methods.method import Labeled, Method
from dmt.models import build, names
from dmt.own import view_counts
from dmt.results.report import Report
from dmt.runs import environment, joining, progress, starting
from dmt.runs.folder import Folder
from dmt.runs.starting import Starts
from dmt.runs.stopping import Stop
from dmt.tasks import opening
from dmt.workers import crew

FEW = 50
"""With fewer validation images, the user is told that the round after which they stop training may be chance."""


def fit(
    data: str | Path,
    *,
    out: str | Path,
    method: str | Sequence[str] | None = None,
    baseline: bool = True,
    keep: str | None = None,
    seed: int | Iterable[int] = 1,
    settings: Mapping[str, Any] | None = None,
    start: str | Path | Mapping[str, str | Path] | None = None,
    data_folder: str | Path = "data",
    device: str | torch.device = "auto",
    fast: bool | None = None,
    budget: float | None = None,
    checkpoint_every: float = 30.0,
    watcher: progress.Watcher | None = None,
    stop: Stop | None = None,
    donors: str | Path | Sequence[str | Path] = (),
    anyway: bool = False,
    folds: bool = True,
    jobs: int | None = None,
    on: str | None = None,
) -> Report:
    """Train one or more methods on a data set and report the results.

    Repeating the call resumes where it stopped: finished stages are skipped, an interrupted one continues, and the
    result equals that of an uninterrupted run. Stages that several methods have in common are trained once.

    In processes started by torchrun, all of them train each stage together, and only the first writes files and
    messages.

    Args:
        data: a folder of your own images, or a preset, e.g. "digits", "cifar10-4k" or "voc-1of20".
        out: the run's folder; nothing is written elsewhere.
        method: one or more of `dmt list`; by default "dmt" or, on your images with a GPU, what cross-validation
            prefers.
        baseline: also train a Baseline for methods that learn from pseudo labels, so that their gain is known. It
            shares its stages with the other methods and costs nothing, except with ``share``, where it takes two more
            trainings.
        keep: which nets of a method to use, those of the "last" round or of the "best" by validation. By default
            unchanged for a resumed run, and "last" for a new one. It may be changed at any time.
        seed: one or more seeds; each determines the split and all random numbers.
        settings: options that differ from the preset, by key, e.g. ``{"gamma": 5.0, "online.threshold": 0.95}``.
        start: what fresh nets start from: "random", "timm", "wheel" or a file, as text or as a Path, or these by line,
            ``{"A": …, "B": …}``.
        data_folder: where data sets that are not included in the package are stored.
        device: "auto", "cpu", "cuda" or "cuda:N".
        fast: compile steps and, on CUDA, record them as a graph; by default on CUDA only.
        budget: stop cleanly after this many seconds. A new run on your images gets a schedule that fits.
        checkpoint_every: seconds between checkpoints within a stage.
        watcher: receives progress; by default it is shown as bars or lines.
        stop: replaces the one made from ``budget``, so that several runs can share it; its own budget does not affect
            the schedule.
        donors: run folders whose finished stages are reused where this run would train the same; each must exist.
        anyway: train on a folder although `dmt check` finds errors in it; the run and its reports then say so.
        folds: let cross-validation on the labels of your images choose learning rates, lengths, γ and the method of a
            new run.
        jobs: how many stages that do not depend on each other are trained at once, each in its own process.
        on: "ray" or "ray:ADDRESS" for workers on a Ray cluster: ``jobs`` of them, or as many as it has room for.

    Returns:
        The report. ``print`` shows tables and the verdict; as numbers, ``report.scores["dmt"][1]`` is the final
        model's test score with seed 1, ``report.gain("dmt")`` the points over the Baseline by seed,
        ``report.compare("dmt", "cl")`` those over another method, and ``report.per_class("dmt")`` the score of each
        class by its name. A process of torchrun on a machine that does not see the run's folder gets an empty report.

    Raises:
        DmtError: for errors that the caller can fix; `Stopped` when stopped by the budget or a signal. Where a message
            names options of the command, ``--set key=value`` is ``settings={"key": value}`` here, and the others are
            arguments of the same name.
    """
    place, folder = request.folder("out", out), request.folder("data_folder", data_folder)
    wanted = request.device(device)
    request.require_switches(baseline=baseline, anyway=anyway, folds=folds, fast=False if fast is None else fast)
    ending = stop or Stop(budget)  # the time of the budget starts here
    workers = crew.of(jobs, on)
    if workers is not None and joining.launched():
        raise ConfigError("torchrun trains one stage by all processes; start it without --jobs and --on")
    givers = request.donors(donors)
    with joining.joined() as processes:
        if processes is not None:
            joining.require_gpu_each(wanted)
        asked = Request(
            request.data(data),
            place,
            request.names(method),
            request.several(seed),
            configuration.given(settings or {}),
            request.by_line(start),
            baseline=baseline,
            keep=keep,
            budget=budget,
            anyway=anyway,
            folds=folds,
        )
        execution = environment.pick_execution(wanted, fast)
        if processes is not None and not processes.leads:
            helping.help_out(processes, execution)
            if not Folder(asked.out).begun:  # it is on the machine of the first process
                return Report(())
        else:
            with watcher or progress.default() as watching:
                here = Conditions(folder, execution, checkpoint_every, ending, watching, givers, processes)
                here = replace(here, crew=workers, asked=(wanted, fast))
                train(asked, here)
    return Report.read([place])


def train(asked: Request, conditions: Conditions) -> None:
    """Train what was requested, or what is still missing in the run's folder."""
    folder = Folder(asked.out)
    folder.require_ours()
    if not conditions.execution.on_cuda:
        environment.keep_freed_memory()
    prepared = _prepare(asked, folder, conditions)
    _require_sense(asked, prepared, conditions)
    _require_nets(asked, prepared)
    if not folder.begun:
        view_counts.require(prepared.config, prepared.methods)
    starts = starting.find(asked.starts, prepared.config, prepared.preset.start, folder.starts())
    for line in prepared.lines:
        conditions.watcher.note(line)
    conditions = replace(conditions, data_folder=prepared.images or conditions.data_folder)
    runner = Runner(prepared.config, folder, starts, conditions)
    runner.open(asked.seeds)  # data and nets are tested before the folder is bound to a configuration
    runner.require_usable(prepared.methods)
    _require_validation(asked, prepared, runner.validation_images, conditions)
    prepared = searching.settle(asked, prepared, starts, runner, conditions)
    with _claimed(folder, _head(prepared, starts, runner), conditions) as threads:
        for line in options_read.note(prepared.methods, prepared.config, asked.settings):
            conditions.watcher.note(line)
        work = Open(prepared.config, starts, folder.path, conditions.data_folder, asked.seeds, threads)
        orders.give(conditions.processes, work)
        session = Session(runner, prepared.methods, asked.seeds, asked.keep)
        if conditions.crew is None:
            session.run()
        else:
            stages_at_once.run(session, conditions.crew, threads, conditions.asked)
        orders.give(conditions.processes, None)


def _prepare(asked: Request, folder: Folder, conditions: Conditions) -> Prepared:
    """Decide what to train, with options from the preset of a data set, or chosen for a user's folder."""
    images = folder_policy.own_folder(asked.data)
    if images is not None:
        return folder_policy.prepare(images, asked, folder, conditions)
    preset = presets.get(str(asked.data))
    config = configuration.override(preset.config, asked.settings)
    shadows = Path(preset.name).is_dir()
    notes = (f"{preset.name} is a data set of dmt list; for your folder of that name, write ./{preset.name}",)
    return Prepared(preset, config, asked.methods_or(catalogue.default().name), notes=notes if shadows else ())


def _head(prepared: Prepared, starts: Starts, runner: Runner) -> dict[str, Any]:
    """Return the entries of the manifest that a run is bound to."""
    head: dict[str, Any] = {
        "data": prepared.preset.name,
        "folder": None if prepared.images is None else str(prepared.images.resolve()),
        "config": configuration.flat(prepared.config),
        "images": runner.fingerprint,
        "starts": starts.known,
        "threads": environment.fitting_threads(runner.threads_for),
    }
    if prepared.search:
        head["search"] = prepared.search
    if prepared.pool:
        head["pool"] = prepared.pool
    if prepared.shortened:
        head["shortened"] = prepared.shortened
    return head if prepared.images is None else head | {"warnings": prepared.warnings}


@contextmanager
def _claimed(folder: Folder, head: dict[str, Any], conditions: Conditions) -> Iterator[int]:
    """Claim the run's folder, stop cleanly on signals, and compute with as many threads as when the run was new.

    Yields:
        The number of threads. Several processes share the cores of a machine and use no more than torchrun allows.
    """
    with conditions.stop.on_signals(), folder.claimed(head) as manifest:
        threads = manifest["threads"]
        if conditions.processes is not None:
            threads = min(threads, torch.get_num_threads())
        with environment.threads(threads), conditions.execution.active():
            session = environment.describe(conditions.execution.device, conditions.processes)
            folder.log_session(session | ({} if conditions.crew is None else conditions.crew.describe()))
            yield threads


def _require_sense(asked: Request, prepared: Prepared, conditions: Conditions) -> None:
    """Refuse requests that make no sense, before anything is written."""
    config = prepared.config
    if config.data.sizes.pixels and not config.recipe.per_class:
        raise ConfigError("pixels are ranked within each class; leave per_class=true")
    for method in map(catalogue.get, prepared.methods):
        _require_fitting(method, prepared)
        method.plan(config.recipe)  # raises for options that make no sense
    if asked.keep not in (None, "best", "last"):
        raise ConfigError(f"keep takes best or last, not '{asked.keep}'")
    pause = conditions.checkpoint_every
    if not isinstance(pause, Real) or not pause >= 0:
        raise ConfigError(f"checkpoint_every must be 0 seconds or more, not {pause!r}")
    if not prepared.methods or not asked.seeds:
        raise ConfigError("nothing to train: give at least one method and one seed")


def _require_nets(asked: Request, prepared: Prepared) -> None:
    """Refuse requested nets that do not exist, before notes about the plan are shown."""
    config = prepared.config
    if asked.settings.keys() & {"net", "net_b"}:
        for name in dict.fromkeys(map(config.net_of, "AB")):
            build.build(opening.net_spec(config.data, name), seed=0)


def _require_validation(asked: Request, prepared: Prepared, images: int, conditions: Conditions) -> None:
    """Refuse to choose rounds by validation without validation images, and warn if there are few."""
    stops = prepared.config.recipe.stop_rounds is not None
    if not images and (asked.keep == "best" or stops):
        who = "--keep best" if asked.keep == "best" else "stop_rounds"
        raise ConfigError(f"{who} needs validation images; put some into val/, or set validation above 0")
    if stops and images < FEW:
        conditions.watcher.note(
            f"note: with {images} validation images it may be chance when the rounds end (stop_rounds); "
            f"{FEW} or more tell better"
        )


def _require_fitting(method: Method, prepared: Prepared) -> None:
    """Refuse a method that cannot be used with these data or nets."""
    sizes = prepared.config.data.sizes
    what: Labeled = "pixels" if sizes.pixels else "images"
    if what not in method.serves:
        raise ConfigError(f"{method.title} labels {method.serves[0]}, and here {what} get labels; see dmt list methods")
    net, stages = prepared.config.net, method.plan(prepared.config.recipe).stages
    if names.is_frozen(net) and any(stage.objective.teaches_encoder for stage in stages):
        raise ConfigError(f"{method.title} trains encoders, and that of '{net}' is frozen; give another --net")
    if prepared.images is not None and method.ceiling:
        raise ConfigError(f"the {method.title} needs the labels of all images, which are unknown here; leave it out")
    if not sizes.unlabeled and prepared.config.recipe.batchnorm == "reestimate":
        raise ConfigError("batchnorm=reestimate needs unlabeled images, and there are none; leave it out")
    if not sizes.unlabeled and method.semi_supervised:
        alone = catalogue.baseline().name
        raise ConfigError(f"there are no unlabeled images to learn from; add some, or use --method {alone}")
