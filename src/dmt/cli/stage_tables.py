"""What `dmt plan` shows: the stages of a fit, and how long they will take."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.table import Table

from dmt import config as configuration
from dmt import presets
from dmt.config import Config
from dmt.core.execution import Execution
from dmt.fitting import folder_policy, options_read
from dmt.methods import catalogue
from dmt.methods.plan import Stage
from dmt.models import build
from dmt.own import choosing, planning, rehearsal
from dmt.own.known_nets import Asked
from dmt.runs import environment, forecast
from dmt.tasks import opening


def lines(
    data: str, method: str, settings: Mapping[str, Any], execution: Execution, time: bool
) -> Iterator[Table | str]:
    """Yield a table of the stages, and lines about them, each as soon as it is known."""
    own, settings = folder_policy.own_folder(data), configuration.given(settings)
    if own is not None:
        preset = choosing.choose(own, execution.device, Asked.of(settings, {})).preset
        config = choosing.override(preset.config, settings)
        yield from _of_folder(own, method, config, execution, time)
    else:
        config = configuration.override(presets.get(data).config, settings)
        yield from _of_data_set(method, config, execution, time)
    yield from options_read.note(catalogue.with_baseline([method]), config, settings)
    if config.recipe.stop_rounds is not None:
        yield f"at most: stop_rounds={config.recipe.stop_rounds} may end the rounds early, based on validation"


def _of_data_set(method: str, config: Config, execution: Execution, time: bool) -> Iterator[Table | str]:
    stages = _with_baseline(method, config)
    spec = opening.net_spec(config.data, config.net_of("A"))
    for name in dict.fromkeys((config.net, config.net_of("B"))):
        build.build(opening.net_spec(config.data, name), seed=0)  # raises for an unknown net
    rate = None
    if time:
        with environment.threads(environment.fitting_threads(spec.shape)):
            rate = forecast.passes_per_second(spec, max(stage.schedule.batch for stage in stages), execution)
    table, summary = forecast.table(stages, config.data.sizes, rate, build.forward_share(config.net))
    yield table
    yield f"{summary}, net {config.net_of('A')}"


def _with_baseline(method: str, config: Config) -> list[Stage]:
    """Return the stages of a fit: those of the method, and those of its Baseline that it does not share."""
    stages = list(catalogue.plan(method, config.recipe).stages)
    beside = catalogue.baseline()
    others = beside.plan(config.recipe).stages if catalogue.get(method).compared else ()
    return [*stages, *(replace(stage, name=f"{beside.title} {stage.name}") for stage in others if stage not in stages)]


def _of_folder(folder: Path, method: str, config: Config, execution: Execution, time: bool) -> Iterator[Table | str]:
    """Yield the stages of a run on a user's folder, and a forecast of their time from timing a few steps."""
    contents = opening.contents_of(config.data, folder)
    method = method if contents.unlabeled else catalogue.baseline().name
    stages, methods = _with_baseline(method, config), catalogue.with_baseline([method])
    table, summary = forecast.table(stages, config.data.sizes, None, build.forward_share(config.net))
    yield table
    yield f"{summary}, net {config.net_of('A')}"
    if time:
        with environment.threads(environment.fitting_threads(opening.net_spec(config.data, config.net_of("A")).shape)):
            rates = rehearsal.rehearse(config, contents, execution, methods)
        yield planning.line(planning.forecast(config, contents, rates, methods), execution.device, methods)
