"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated, Any

import typer

DataArg = Annotated[
    str, typer.Argument(metavar="DATA", help="A folder of your images, or a data set from `dmt list`, e.g. digits.")
]
RunArg = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder made by dmt fit.")]
LineOpt = Annotated[
    str | None,
    typer.Option(
        "--line",
        metavar="A|B|both",
        help="For a pair of nets: one, or both together.  [default: both, unless one is clearly better on validation]",
    ),
]
MethodOpt = Annotated[str, typer.Option("--method", "-m", help="A method from `dmt list`.")]
OneMethodOpt = Annotated[str | None, typer.Option("--method", "-m", help="Which method, if the run has several.")]
OneSeedOpt = Annotated[int | None, typer.Option("--seed", help="Which seed, if the run has several.")]
SeedOpt = Annotated[int | None, typer.Option(help="Determines the split and all random numbers.  [default: 1]")]
SeedsOpt = Annotated[str | None, typer.Option(metavar="1-3", help="Several seeds instead of one: 1-3 or 1,4,7.")]
NetOpt = Annotated[str | None, typer.Option(help="The net, e.g. wrn-28-2, timm:resnet18 or smp:unet/resnet34.")]
StartOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--start",
        metavar="[A=]START",
        help="Initial weights of nets: random, timm, wheel (included) or a file; repeatable.",
    ),
]
SetOpt = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override an option; repeatable.")]
ConfigOpt = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Overrides from a TOML file.")]
DataOpt = Annotated[Path, typer.Option("--data", metavar="DIR", help="Folder of a data set that is not built in.")]
ImagesOpt = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Folder of the images.  [default: your images as in fit; else data]"),
]
UnlabeledOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--unlabeled", metavar="SHARD", help="More unlabeled images: tar files, URLs, {000..999}.tar; repeatable."
    ),
]
AnywayOpt = Annotated[
    bool, typer.Option("--anyway", help="Train on your images even if dmt check finds errors; every report says so.")
]
DeviceOpt = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
JobsOpt = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Number of stages or trials to train at once, each in its own process.  "
        "[default: 1; on ray, as many as fit]",
    ),
]
OnOpt = Annotated[
    str | None,
    typer.Option(
        metavar="ray[:ADDRESS]", help="Train on a Ray cluster; the run folder must be visible to all workers."
    ),
]


def shards(unlabeled: list[str] | None) -> tuple[str, ...]:
    """Return the shards that --unlabeled names, as absolute paths and URLs."""
    from dmt.data.folders import tar_places

    return tar_places.named(unlabeled or ())


def settings(net: str | None, pairs: list[str] | None, file: Path | None) -> dict[str, Any]:
    """Return all overrides: --set takes precedence over the file, and --net over both."""
    from dmt import config as configuration

    settings: dict[str, Any] = {} if file is None else configuration.from_toml(file)
    settings |= configuration.from_pairs(pairs or [])
    return settings if net is None else settings | {"net": net}
