"""``dmt tune``: try settings, and say which to use."""

from pathlib import Path
from typing import Annotated

import typer

from dmt.cli import terminal_text
from dmt.cli.shared_options import (
    AnywayOpt,
    ConfigOpt,
    DataArg,
    DataOpt,
    DeviceOpt,
    JobsOpt,
    MethodOpt,
    NetOpt,
    OnOpt,
    SeedOpt,
    SeedsOpt,
    SetOpt,
    StartOpt,
    settings,
)
from dmt.errors import ConfigError

app = typer.Typer()


@app.command()
def tune(
    data: DataArg,
    out_: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="A folder for all trials.")],
    method: MethodOpt = "dmt",
    grid: Annotated[
        list[str] | None,
        typer.Option(
            "--grid",
            metavar="KEY=A,B,…",
            help="Values to try; repeatable; separate values that are lists by /.  [default: the paper's gamma]",
        ),
    ] = None,
    search: Annotated[str, typer.Option(help="grid: every combination; optuna: --trials samples.")] = "grid",
    trials: Annotated[int | None, typer.Option(metavar="N", help="How many settings Optuna tries.")] = None,
    seed: SeedOpt = None,
    seeds: SeedsOpt = None,
    net: NetOpt = None,
    start: StartOpt = None,
    set_: SetOpt = None,
    config: ConfigOpt = None,
    data_folder: DataOpt = Path("data"),
    device: DeviceOpt = "auto",
    budget: Annotated[
        str | None, typer.Option(metavar="30m", help="Stop cleanly after this time; exit code 3.")
    ] = None,
    anyway: AnywayOpt = False,
    jobs: JobsOpt = None,
    on: OnOpt = None,
) -> None:
    """Try settings and compare them on the validation images. Repeat to resume, or to add values or seeds.

    \b
    dmt tune digits --seeds 1-3 --out runs/tune
    dmt tune photos/ --grid gamma=1,2,4 --out runs/tune
    dmt tune digits --grid "fractions=0.2,0.4,0.6,0.8,1/0.5,1" --out runs/tune
    dmt tune digits --search optuna --trials 20 --grid gamma=1..9 --grid rate_round=0.01..0.3 --out runs/tune
    dmt tune digits --jobs 2 --out runs/tune               two trials at once
    The default is kept unless another setting is clearly better. Test scores are not shown.
    Ctrl-C stops at a checkpoint. Exit codes: 0 done, 2 an error to fix, 3 budget spent, 130 Ctrl-C.
    """
    if seed is not None and seeds is not None:
        raise ConfigError("give --seed for one or --seeds for several, not both")
    from dmt import config as configuration
    from dmt.runs import starting, stopping
    from dmt.tuning import search_space, trial_folder, tuner

    tuned = tuner.tune(
        data,
        out=out_,
        grid=search_space.from_pairs(grid or []),
        search=search,
        trials=trials,
        method=method,
        seed=configuration.seeds(seeds) if seeds is not None else 1 if seed is None else seed,
        settings=settings(net, set_, config),
        start=starting.parse(start or []),
        data_folder=data_folder,
        device=device,
        budget=None if budget is None else stopping.seconds(budget),
        anyway=anyway,
        jobs=jobs,
        on=on,
    )
    terminal_text.show(tuned.text(terminal_text.width()))
    terminal_text.show(f"the chosen run is in {tuned.chosen.folder}; all results are in {out_ / trial_folder.INDEX}")
