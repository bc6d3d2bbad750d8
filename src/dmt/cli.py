"""The command. Every verb is a thin layer over a function of the library."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console

from dmt import (
    cli_files,
    environment,
    forecast,
    predict,
    predict_masks,
    presets,
    progress,
    run,
    scoring,
    starting,
    stopping,
)
from dmt import config as configuration
from dmt.config import Config
from dmt.errors import ConfigError, DmtError, RunError
from dmt.folder import MANIFEST
from dmt.methods import catalogue
from dmt.models import build
from dmt.report import Report
from dmt.tasks import opening
from dmt.version import VERSION

app = typer.Typer(
    name="dmt",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="""Semi-supervised vision by Dynamic Mutual Training: a better classifier from a few labels and many images.

    \b
    dmt fit digits --method dmt --out runs/a                  train; repeat the command to resume
    dmt score runs/a --on test                                measure
    dmt predict runs/a img1.png folder/ --out pred.csv        use
    """,
)
app.add_typer(cli_files.app)
out = Console(highlight=False, soft_wrap=True)

DataArg = Annotated[str, typer.Argument(metavar="DATA", help="A data set of `dmt list`, e.g. digits, cifar10-4k.")]
RunArg = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder made by dmt fit.")]
MethodOpt = Annotated[str, typer.Option("--method", "-m", help="A method of `dmt list`.")]
NetOpt = Annotated[str | None, typer.Option(help="The net, e.g. wrn-28-2, timm:resnet18 or smp:unet/resnet34.")]
StartOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--start", metavar="[A=]START", help="Fresh nets start from: random, timm, wheel or a file; repeatable."
    ),
]
SetOpt = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override an option; repeatable.")]
ConfigOpt = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Overrides from a TOML file.")]
DataOpt = Annotated[Path, typer.Option("--data", metavar="DIR", help="Folder of a data set that is not embedded.")]
DeviceOpt = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
OneMethodOpt = Annotated[str | None, typer.Option("--method", "-m", help="Of a run with several methods, this one.")]
OneSeedOpt = Annotated[int | None, typer.Option("--seed", help="Of a run with several seeds, this one.")]


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks instead of one-line errors.")] = False,
) -> None:
    if version:
        out.print(f"dmt {VERSION}")
        raise typer.Exit


@app.command("list")
def list_(
    what: Annotated[
        str | None, typer.Argument(help="data, methods, nets, options or pixel-options; the first three if left out.")
    ] = None,
) -> None:
    """What there is: data sets, methods and nets, one line each.

    \b
    dmt list
    dmt list options          every key for --set, with its default on digits
    dmt list pixel-options    the same for data with masks, with its default on scenes
    """
    sections: dict[str, Callable[[], dict[str, str]]] = {
        "data": lambda: {name: preset.summary for name, preset in presets.PRESETS.items()},
        "methods": lambda: {name: method.summary for name, method in catalogue.METHODS.items()},
        "nets": lambda: build.NETS,
        "options": lambda: configuration.described(presets.get("digits").config),
        "pixel-options": lambda: configuration.described(presets.get("scenes").config),
    }
    if what is not None and what not in sections:
        raise ConfigError(f"dmt list takes {', '.join(sections)}, not '{what}'")
    for title in [what] if what else ["data", "methods", "nets"]:
        out.print(f"{title}:")
        for name, summary in sections[title]().items():
            out.print(f"  {name:<18} {summary}", markup=False)


@app.command()
def plan(
    data: DataArg,
    method: MethodOpt = "dmt",
    net: NetOpt = None,
    set_: SetOpt = None,
    config: ConfigOpt = None,
    device: DeviceOpt = "auto",
    time: Annotated[bool, typer.Option(help="Time a few steps of the net to forecast the duration.")] = True,
) -> None:
    """The stages of a method as a table. Trains nothing and needs no data.

    \b
    dmt plan digits --method dmt
    dmt plan cifar10-4k --method cl --no-time
    """
    settings = _config(data, net, set_, config)
    stages = catalogue.plan(method, settings.recipe).stages
    spec = opening.net_spec(settings.data, settings.net)
    build.build(spec, seed=0)  # an unknown net is an error here too
    rate = None
    if time:
        execution = environment.pick_execution(device)
        with environment.threads(environment.fitting_threads(spec.shape)):
            rate = forecast.passes_per_second(spec, max(stage.schedule.batch for stage in stages), execution)
    table, summary = forecast.table(stages, settings.data.sizes, rate)
    Console(highlight=False, width=max(110, out.width)).print(table)
    out.print(f"{summary}, net {settings.net}")


@app.command()
def fit(
    data: DataArg,
    out_: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The run's folder.")],
    method: Annotated[
        str | None, typer.Option("--method", "-m", help="A method of `dmt list`.  [default: dmt]")
    ] = None,
    compare: Annotated[str | None, typer.Option(metavar="A,B,…", help="Several methods instead of one.")] = None,
    seed: Annotated[int | None, typer.Option(help="Decides the split and every random number.  [default: 1]")] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="1-3", help="Several seeds instead of one: 1-3 or 1,4,7.")
    ] = None,
    net: NetOpt = None,
    start: StartOpt = None,
    set_: SetOpt = None,
    config: ConfigOpt = None,
    data_folder: DataOpt = Path("data"),
    device: DeviceOpt = "auto",
    fast: Annotated[
        bool | None, typer.Option("--fast/--plain", help="Compiled and recorded steps; by default on CUDA only.")
    ] = None,
    budget: Annotated[str | None, typer.Option(metavar="9m", help="Stop cleanly after this time; exit code 3.")] = None,
    checkpoint_every: Annotated[float, typer.Option(metavar="SECONDS", help="Time between checkpoints.")] = 30.0,
) -> None:
    """Train. Repeat the same command to resume: finished stages are skipped, an interrupted one goes on.

    \b
    dmt fit digits --method dmt --seed 1 --out runs/a
    dmt fit digits --compare baseline,cl,dmt --seeds 1-3 --out runs/cmp
    dmt fit scenes --compare baseline,dmt --out runs/s
    dmt fit cifar10-4k --data ~/data --budget 9m --out runs/c10 --set gamma=5
    dmt fit voc-1of20 --data ~/VOC --start A=coco.pth --start B=resnet101.pth --out runs/v
    Ctrl-C stops at a checkpoint. Exit codes: 0 done, 2 an error to mend, 3 budget spent, 130 Ctrl-C.
    """
    if method is not None and compare is not None:
        raise ConfigError("give --method for one or --compare for several, not both")
    if seed is not None and seeds is not None:
        raise ConfigError("give --seed for one or --seeds for several, not both")
    report = run.fit(
        data,
        out=out_,
        method=method or "dmt" if compare is None else [name.strip() for name in compare.split(",")],
        seed=configuration.seeds(seeds) if seeds is not None else 1 if seed is None else seed,
        settings=_settings(net, set_, config),
        start=starting.parse(start or []),
        data_folder=data_folder,
        device=device,
        fast=fast,
        budget=None if budget is None else stopping.seconds(budget),
        checkpoint_every=checkpoint_every,
    )
    out.print(str(report), markup=False)
    out.print(f"all of it is in {out_}; next: dmt score {shlex.quote(str(out_))} --on test", markup=False)


@app.command()
def score(
    run_: RunArg,
    on: Annotated[str, typer.Option(help="test or validation.")] = "test",
    method: OneMethodOpt = None,
    seed: OneSeedOpt = None,
    data_folder: DataOpt = Path("data"),
    device: DeviceOpt = "auto",
) -> None:
    """Measure the nets of a run, raw and EMA: accuracy, fine-grained accuracy, and a table per class.

    \b
    dmt score runs/a --on test
    dmt score runs/cmp --method dmt --seed 2
    """
    finished = scoring.Finished(run_, data_folder, environment.pick_device(device), _note)
    for job in finished.jobs(method, seed):
        if job.finished:
            out.print(scoring.table(finished, job, on), markup=False)
        else:
            _note(f"{job.method} with seed {job.seed} is not finished; repeat the fit command to finish it")
    if not any(job.finished for job in finished.jobs(method, seed)):
        raise RunError(f"nothing to score in {run_}")


@app.command("predict")
def predict_(
    run_: RunArg,
    images: Annotated[list[Path], typer.Argument(metavar="IMAGE…", help="Image files and folders of images.")],
    out_: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="PATH", help="The CSV, or the folder of masks.  [default: pred.csv, pred]"),
    ] = None,
    method: OneMethodOpt = None,
    seed: OneSeedOpt = None,
    device: DeviceOpt = "auto",
) -> None:
    """Classify or segment images with the net of a run that validation prefers.

    \b
    dmt predict runs/a img1.png folder/ --out pred.csv
    dmt predict runs/s photos/ --out pred/
    The CSV has the columns file, class, probability, and margin: the lead over the second class.
    The folder gets masks/ (indexed PNG: the pixel is the class), overlays/ and classes.csv.
    """
    shipped = scoring.shipped_net(run_, method, seed, environment.pick_device(device))
    paths = predict.find(images)
    if shipped.spec.pixels:
        place = out_ or Path("pred")
        with progress.default() as watcher:
            count = predict_masks.write(shipped, paths, place, lambda done, of: watcher.busy("predicting", done, of))
        out.print(f"{count} images segmented by {shipped.name}; masks and overlays in {place}", markup=False)
        return
    place = out_ or Path("pred.csv")
    count = predict.write_csv(predict.predict(shipped.net, paths, shipped.spec.shape, shipped.classes), place)
    out.print(f"{count} images classified by {shipped.name}; written to {place}", markup=False)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="One or more run folders.")],
) -> None:
    """What came out: score per round, coverage, and the error of pseudo labels where truth exists.

    \b
    dmt report runs/*
    """
    there = [path for path in runs if (path / MANIFEST).is_file()]
    for path in sorted(set(runs) - set(there)):
        _note(f"{path} is no run folder; left out")
    if not there:
        raise RunError("no run folder among those named; make one with dmt fit")
    out.print(str(Report.read(there)), markup=False)


def main() -> None:
    """Run the command; what a user can mend is one line and exit code 2."""
    debug = "--debug" in sys.argv[1:]
    arguments = [word for word in sys.argv[1:] if word != "--debug"]
    try:
        app(args=arguments, standalone_mode=True)
    except stopping.Stopped as stopped:
        print(f"dmt: {stopped}", file=sys.stderr)
        raise SystemExit(stopped.code) from None
    except BrokenPipeError:
        raise SystemExit(1) from None
    except (DmtError, OSError, torch.OutOfMemoryError) as error:
        if debug:
            raise
        print(f"dmt: error: {_line(error)}", file=sys.stderr)
        raise SystemExit(2) from None


def _line(error: Exception) -> str:
    """An error in one line that says what to do."""
    if isinstance(error, torch.OutOfMemoryError):
        return "the device has too little memory; set batch, batch_pseudo and batch_labeled lower"
    if isinstance(error, OSError):
        return f"{error.filename or 'the system'}: {error.strerror or error}"
    return str(error)


def _settings(net: str | None, pairs: list[str] | None, file: Path | None) -> dict[str, Any]:
    """Overrides in order of precedence: file, then --set, then --net."""
    settings: dict[str, Any] = {} if file is None else configuration.from_toml(file)
    settings |= configuration.from_pairs(pairs or [])
    return settings if net is None else settings | {"net": net}


def _config(data: str, net: str | None, pairs: list[str] | None, file: Path | None) -> Config:
    return configuration.override(presets.get(data).config, _settings(net, pairs, file))


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
