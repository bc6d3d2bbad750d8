"""The verbs of the command that show what there is and what would be done."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console

from dmt import config as configuration
from dmt import presets
from dmt.cli.shared_options import ConfigOpt, DataArg, DeviceOpt, MethodOpt, NetOpt, SetOpt, settings
from dmt.config import Config
from dmt.core.execution import Execution
from dmt.data.folders import photos
from dmt.errors import ConfigError
from dmt.fitting import run
from dmt.methods import catalogue
from dmt.methods.method import Method
from dmt.methods.plan import Stage
from dmt.models import build
from dmt.own import choosing, planning
from dmt.own.choosing import Asked
from dmt.runs import environment, forecast
from dmt.tasks import opening

app = typer.Typer()
out = Console(highlight=False, soft_wrap=True)


@app.command("list")
def list_(
    what: Annotated[
        str | None, typer.Argument(help="data, methods, nets, options or pixel-options; the first three if left out.")
    ] = None,
) -> None:
    """List data sets, methods and nets, one line each.

    \b
    dmt list
    dmt list options          every key for --set, with its default on digits
    dmt list pixel-options    the same for data with masks, with its default on scenes
    """
    sections: dict[str, Callable[[], dict[str, dict[str, str]]]] = {
        "data": lambda: {"data": {name: preset.summary for name, preset in presets.PRESETS.items()}},
        "methods": lambda: {"methods": {name: _method_line(method) for name, method in catalogue.METHODS.items()}},
        "nets": lambda: {"nets": build.NETS},
        "options": lambda: _options("digits"),
        "pixel-options": lambda: _options("scenes"),
    }
    if what is not None and what not in sections:
        raise ConfigError(f"dmt list takes {', '.join(sections)}, not '{what}'")
    for wanted in [what] if what else ["data", "methods", "nets"]:
        for title, lines in sections[wanted]().items():
            out.print(f"{title}:")
            width = max(18, *map(len, lines))
            for name, summary in lines.items():
                out.print(f"  {name:<{width}} {summary}", markup=False)


def _options(preset: str) -> dict[str, dict[str, str]]:
    """Every key with its help and its default: those of all methods, then those of one method each."""
    lines = configuration.described(presets.get(preset).config)
    found = {"options": {key: text for key, text in lines.items() if "." not in key}}
    for group in catalogue.groups():
        titles = ", ".join(method.title for method in catalogue.owners(group))
        found[f"options of {titles}"] = {key: text for key, text in lines.items() if key.startswith(f"{group}.")}
    return found


def _method_line(method: Method) -> str:
    only = "" if len(method.serves) > 1 else f"; {method.serves[0]} only"
    return f"{method.summary}{only}" + (f" ({method.reference})" if method.reference else "")


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
    """The stages of a method as a table. Trains nothing, and reads only your images.

    \b
    dmt plan photos/
    dmt plan digits --method dmt
    dmt plan cifar10-4k --method cl --no-time
    """
    own = run.own_folder(data)
    chosen = _config(data, net, set_, config, environment.pick_device(device))
    if own is not None:
        _plan_own(own, method, chosen, environment.pick_execution(device), time)
        return
    stages = _with_baseline(method, chosen)
    spec = opening.net_spec(chosen.data, chosen.net)
    for name in dict.fromkeys((chosen.net, chosen.net_of("B"))):
        build.build(opening.net_spec(chosen.data, name), seed=0)  # an unknown net is an error here too
    rate = None
    if time:
        execution = environment.pick_execution(device)
        with environment.threads(environment.fitting_threads(spec.shape)):
            rate = forecast.passes_per_second(spec, max(stage.schedule.batch for stage in stages), execution)
    table, summary = forecast.table(stages, chosen.data.sizes, rate, build.forward_share(chosen.net))
    Console(highlight=False, width=max(110, out.width)).print(table)
    out.print(f"{summary}, net {chosen.net}")


def _config(data: str, net: str | None, pairs: list[str] | None, file: Path | None, device: torch.device) -> Config:
    own = run.own_folder(data)
    changed = settings(net, pairs, file)
    preset = presets.get(data) if own is None else choosing.choose(own, device, Asked.of(changed, {})).preset
    return configuration.override(preset.config, changed)


def _with_baseline(method: str, config: Config) -> list[Stage]:
    """The stages of a fit: those of the method, and those of its Baseline that are not among them."""
    stages = list(catalogue.plan(method, config.recipe).stages)
    beside = catalogue.baseline()
    others = beside.plan(config.recipe).stages if catalogue.get(method).compared else ()
    return [*stages, *(replace(stage, name=f"{beside.title} {stage.name}") for stage in others if stage not in stages)]


def _plan_own(folder: Path, method: str, config: Config, execution: Execution, time: bool) -> None:
    """The stages of a run on a user's folder, and how long they will take, from timing a few steps."""
    contents = photos.open_folder(folder)
    method = method if contents.unlabeled else catalogue.baseline().name
    stages, methods = _with_baseline(method, config), catalogue.with_baseline([method])
    table, summary = forecast.table(stages, config.data.sizes, None, build.forward_share(config.net))
    Console(highlight=False, width=max(110, out.width)).print(table)
    out.print(f"{summary}, net {config.net}")
    if time:
        with environment.threads(environment.fitting_threads(opening.net_spec(config.data, config.net).shape)):
            rates = planning.rehearse(config, contents, execution, methods)
        seconds = planning.forecast(config, contents, rates, methods)
        out.print(planning.line(seconds, execution.device, methods))
