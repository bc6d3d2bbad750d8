"""The ``dmt`` command: its subcommands together, with ``dmt fit`` and ``dmt score``, and how errors are shown."""

import io
import logging
import os
import shlex
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dmt.cli import audit, check, export, files, plans, predict, report, terminal_text, tune
from dmt.cli.shared_options import (
    AnywayOpt,
    ConfigOpt,
    DataArg,
    DataOpt,
    DeviceOpt,
    ImagesOpt,
    JobsOpt,
    LineOpt,
    NetOpt,
    OneMethodOpt,
    OneSeedOpt,
    OnOpt,
    RunArg,
    SeedOpt,
    SeedsOpt,
    SetOpt,
    StartOpt,
    UnlabeledOpt,
    settings,
    shards,
)
from dmt.errors import ConfigError, RunError, SaidElsewhereError
from dmt.runs import stopping
from dmt.version import VERSION

ORDER = (
    "check", "fit", "score", "report", "predict", "export", "audit", "tune", "plan", "list", "splits", "pack", "unpack",
)  # fmt: skip
"""Commands in the order in which one typically needs them."""


class InOrder(TyperGroup):
    """A group of commands that lists them as in `ORDER`."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=ORDER.index)


app = typer.Typer(
    name="dmt",
    cls=InOrder,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="""Semi-supervised vision by Dynamic Mutual Training: better nets from a few labels and many images.

    \b
    dmt check photos/                                         what is in your folder, and what is wrong
    dmt fit photos/ --out runs/photos                         train on it
    dmt fit digits --method dmt --out runs/a                  train; repeat the command to resume
    dmt score runs/a --on test                                test accuracy or mean IoU
    dmt predict runs/a img1.png folder/ --out pred.csv        predict new images
    dmt report runs/a --out report.html                       charts and pictures in one page
    dmt audit runs/a                                          wrong labels, and what to label next
    dmt tune digits --seeds 1-3 --out runs/tune               find settings that suit the data
    """,
)
app.add_typer(plans.app)
app.add_typer(check.app)
app.add_typer(files.app)
app.add_typer(predict.app)
app.add_typer(export.app)
app.add_typer(report.app)
app.add_typer(audit.app)
app.add_typer(tune.app)


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks instead of one-line errors.")] = False,
) -> None:
    if version:
        terminal_text.show(f"dmt {VERSION}")
        raise typer.Exit


@app.command()
def fit(
    data: DataArg,
    out_: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="The run's folder.  [default: runs/NAME OF DATA]")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            help="A method from `dmt list`.  [default: dmt; on your images with a GPU, the one that cross-validation "
            "prefers]",
        ),
    ] = None,
    compare: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="Several methods instead of one, trained on the same split.")
    ] = None,
    baseline: Annotated[
        bool,
        typer.Option(
            "--baseline/--no-baseline",
            help="Also train a Baseline, to measure the gain. It shares its stages with the method, "
            "so it costs nothing extra; with share=… two more nets are trained.",
        ),
    ] = True,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="best|last",
            help="Use the nets of the best round on validation, or of the last round; can be changed later.  "
            "[default: the run's earlier choice, else last]",
        ),
    ] = None,
    seed: SeedOpt = None,
    seeds: SeedsOpt = None,
    net: NetOpt = None,
    start: StartOpt = None,
    set_: SetOpt = None,
    config: ConfigOpt = None,
    data_folder: DataOpt = Path("data"),
    unlabeled: UnlabeledOpt = None,
    device: DeviceOpt = "auto",
    fast: Annotated[
        bool | None,
        typer.Option("--fast/--plain", help="Compile steps and capture CUDA graphs; by default on CUDA only."),
    ] = None,
    budget: Annotated[str | None, typer.Option(metavar="9m", help="Stop cleanly after this time; exit code 3.")] = None,
    checkpoint_every: Annotated[float, typer.Option(metavar="SECONDS", help="Time between checkpoints.")] = 30.0,
    anyway: AnywayOpt = False,
    folds: Annotated[
        bool,
        typer.Option(
            help="Before a new run on your images, choose rates, lengths, γ and, on a GPU, the method by "
            "cross-validation on your labels."
        ),
    ] = True,
    jobs: JobsOpt = None,
    on: OnOpt = None,
) -> None:
    """Train on a folder of images or a known data set.

    Repeat the same command to resume: finished stages are skipped, an interrupted one continues.

    \b
    dmt fit photos/                                                       the run is in runs/photos
    dmt fit photos/ --unlabeled 'https://host/{000..099}.tar' --out runs/photos
    dmt fit digits --method dmt --seed 1 --out runs/a
    dmt fit digits --compare baseline,cl,dmt --seeds 1-3 --out runs/cmp
    dmt fit scenes --compare baseline,dmt --out runs/s
    dmt fit cifar10-4k --data ~/data --budget 9m --out runs/c10 --set gamma=5
    dmt fit voc-1of20 --data ~/VOC --start A=coco.pth --start B=resnet101.pth --out runs/v
    dmt fit scenes --jobs 2 --out runs/s                                  both nets of a pair at once
    torchrun --nproc-per-node=8 -m dmt fit cifar10-4k --out runs/c10       each stage on 8 GPUs
    Ctrl-C stops at a checkpoint. Exit codes: 0 done, 2 an error to fix, 3 budget spent, 130 Ctrl-C.
    """
    if method is not None and compare is not None:
        raise ConfigError("give --method for one or --compare for several, not both")
    if seed is not None and seeds is not None:
        raise ConfigError("give --seed for one or --seeds for several, not both")
    from dmt import config as configuration
    from dmt.fitting import folder_policy, run
    from dmt.runs import joining, starting
    from dmt.use import scoring

    name = Path(os.path.normpath(Path(data).absolute())).name  # not resolved: a link gives its own name
    place = out_ or Path("runs", name or "data")
    report = run.fit(
        data,
        out=place,
        method=method if compare is None else [name.strip() for name in compare.split(",")],
        baseline=baseline,
        keep=keep,
        seed=configuration.seeds(seeds) if seeds is not None else 1 if seed is None else seed,
        settings=settings(net, set_, config) | ({"shards": shards(unlabeled)} if unlabeled else {}),
        start=starting.parse(start or []),
        data_folder=data_folder,
        device=device,
        fast=fast,
        budget=None if budget is None else stopping.seconds(budget),
        checkpoint_every=checkpoint_every,
        anyway=anyway,
        folds=folds,
        jobs=jobs,
        on=on,
    )
    if not joining.leads():
        return
    terminal_text.show(report.text(terminal_text.width()))
    named = shlex.quote(str(place))
    terminal_text.show(f"everything is in {place}; for charts: dmt report {named} --out report.html")
    if folder_policy.own_folder(data) is not None:
        terminal_text.show(f"to use it on new images: dmt predict {named} IMAGES/")
        used = scoring.of_several(place, scoring.preferred(place, None, None))
        if used is not None:
            terminal_text.show(f"there, {used}")


@app.command()
def score(
    run_: RunArg,
    on: Annotated[str, typer.Option(help="test or validation.")] = "test",
    method: OneMethodOpt = None,
    seed: OneSeedOpt = None,
    data_folder: ImagesOpt = None,
    line: LineOpt = None,
    device: DeviceOpt = "auto",
) -> None:
    """Show the scores of a run on test images, overall and per class.

    Accuracy or mean IoU of the nets, raw and EMA, and for a pair also of their ensemble.

    \b
    dmt score runs/a --on test
    dmt score runs/s --line both                          only the ensemble of a pair
    dmt score runs/cmp --method dmt --seed 2
    """
    from dmt.runs import environment
    from dmt.use import scoring

    finished = scoring.Finished(run_, data_folder, environment.pick_device(device), terminal_text.note)
    for warning in dict.fromkeys(each for job in finished.jobs(method, seed) for each in job.warnings):
        terminal_text.note(f"warning: the scores may be meaningless: {terminal_text.result(warning)}")
    scoring.require_line(line)
    wanted = finished.jobs(method, seed)
    fitting = [job for job in wanted if line is None or job.has_line(line)]
    if not fitting:
        raise ConfigError(f"there is no --line {line} to score in {run_}; leave it out")
    for job in wanted:
        if line is not None and not job.has_line(line):
            terminal_text.note(f"{job.method} with seed {job.seed} has no --line {line}; skipped")
        elif job.finished:
            terminal_text.show(terminal_text.result(scoring.table(finished, job, on, line, terminal_text.width())))
        else:
            terminal_text.note(
                f"{job.method} with seed {job.seed} is not finished; repeat the fit command to finish it"
            )
    if not any(job.finished for job in fitting):
        raise RunError(f"nothing to score in {run_}")


def main() -> None:
    """Run the command; an error is shown as one line, with exit code 2, and a stop has a code of its own."""
    debug = "--debug" in sys.argv[1:]
    arguments = [word for word in sys.argv[1:] if word != "--debug"]
    warnings.filterwarnings("ignore", module=r"PIL\b")  # harmless, or reported by dmt itself
    _prepare_streams()
    try:
        app(args=arguments, standalone_mode=True)
    except stopping.Stopped as stopped:
        terminal_text.note(f"dmt: {stopped}")
        raise SystemExit(stopped.code) from None
    except BrokenPipeError:
        raise SystemExit(1) from None
    except SaidElsewhereError:
        raise SystemExit(2) from None
    except Exception as error:
        if debug:
            raise
        terminal_text.note(f"dmt: error: {terminal_text.line(error)}")
        raise SystemExit(2) from None


def _prepare_streams() -> None:
    """Let streams replace characters that they cannot encode, and show what the library logs as notes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace" if stream is sys.stdout else "backslashreplace")
    log = logging.getLogger("dmt")
    log.handlers, log.propagate = [_Notes()], False


class _Notes(logging.Handler):
    """Prints what the library logs to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        terminal_text.note(f"note: {record.getMessage()}")


if __name__ == "__main__":
    main()
