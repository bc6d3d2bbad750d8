"""A run: methods × seeds, as stages trained once each, in one folder that can be stopped, moved and gone on with."""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from dmt import config as configuration
from dmt import environment, presets, progress, starting
from dmt.data.segment_options import SegmentOptions
from dmt.errors import ConfigError
from dmt.folder import Folder
from dmt.methods import catalogue
from dmt.report import Report
from dmt.runner import Conditions, Runner
from dmt.stopping import Stop


def fit(
    data: str,
    *,
    out: str | Path,
    method: str | Sequence[str] = "dmt",
    seed: int | Iterable[int] = 1,
    settings: Mapping[str, Any] | None = None,
    start: str | Mapping[str, str] | None = None,
    data_folder: str | Path = "data",
    device: str = "auto",
    fast: bool | None = None,
    budget: float | None = None,
    checkpoint_every: float = 30.0,
    watcher: progress.Watcher | None = None,
) -> Report:
    """Train one or more methods on a data set and report what came out.

    Repeating the call goes on where it stopped: finished stages are skipped, an interrupted one continues, and the
    result equals that of an unbroken run. Stages that several methods have in common are trained once.

    Args:
        data: a preset, e.g. "digits", "cifar10-4k" or "voc-1of20".
        out: the run's folder; nothing is written elsewhere.
        method: one or more of `dmt list`.
        seed: one or more; a seed decides the split and every random number.
        settings: options that differ from the preset, by flat key, e.g. ``{"gamma": 5.0}``.
        start: what fresh nets start from: "random", "timm", "wheel" or a file, or these by line, ``{"A": …, "B": …}``.
        data_folder: where a data set that is not embedded lies.
        device: "auto", "cpu", "cuda" or "cuda:N".
        fast: compile steps and, on CUDA, record them as a graph; by default on CUDA only.
        budget: stop cleanly after so many seconds.
        checkpoint_every: seconds between checkpoints within a stage.
        watcher: hears of progress; bars or lines by default.

    Raises:
        DmtError: for whatever the caller can mend; `Stopped` when stopped by budget or signal.
    """
    preset = presets.get(data)
    config = configuration.override(preset.config, settings or {})
    if isinstance(config.data, SegmentOptions) and not config.recipe.per_class:
        raise ConfigError("pixels are ranked within each class; leave per_class=true")
    methods = [method] if isinstance(method, str) else list(dict.fromkeys(method))
    seeds = [int(seed)] if isinstance(seed, Integral) else [int(each) for each in dict.fromkeys(seed)]  # type: ignore[arg-type]
    if not checkpoint_every >= 0:
        raise ConfigError(f"checkpoint_every must be 0 seconds or more, not {checkpoint_every}")
    for each in methods:
        catalogue.plan(each, config.recipe)  # an unknown method is refused before anything is written
    if not methods or not seeds:
        raise ConfigError("nothing to train: give at least one method and one seed")
    execution = environment.pick_execution(device, fast)
    folder = Folder(Path(out))
    given = starting.parse([start]) if isinstance(start, str) else dict(start or {})
    starts = starting.find(given, config, preset.start, folder.starts())
    with watcher or progress.default() as watching:
        conditions = Conditions(Path(data_folder), execution, checkpoint_every, Stop(budget), watching)
        runner = Runner(config, folder, starts, conditions)
        runner.open(seeds)  # data and nets are tried before the folder is bound to a configuration
        head = {
            "data": data,
            "config": configuration.flat(config),
            "images": runner.fingerprint,
            "starts": starts.known,
            "threads": environment.fitting_threads(runner.threads_for),
        }
        with (
            conditions.stop.on_signals(),
            folder.claimed(head) as manifest,
            environment.threads(manifest["threads"]),
            execution.active(),
        ):
            folder.log_session(environment.describe(execution.device))
            runner.run(methods, seeds)
    return Report.read([out])
