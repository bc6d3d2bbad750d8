"""A run on a user's folder: what nobody asked for is chosen, errors are looked for, and a budget is planned for."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dmt import config as configuration
from dmt import presets
from dmt.config import Config
from dmt.errors import ConfigError, RunError, instead
from dmt.fitting.conditions import Conditions
from dmt.fitting.request import Prepared, Request
from dmt.methods import catalogue
from dmt.own import choosing, planning, precheck, rehearsal
from dmt.own.known_nets import Asked
from dmt.presets import Preset
from dmt.results import reading
from dmt.runs.folder import Folder
from dmt.tasks import opening

SHORT = 0.5
"""Share of its length to which a budget may cut a Baseline before gains over it are doubted."""


def own_folder(data: str | Path) -> Path | None:
    """The folder of images that ``data`` names; None if it names a preset.

    Presets that stand for a user's folder are, as an argument, names of folders.
    """
    own = isinstance(data, Path) or data in presets.OWN
    if not own and data in presets.PRESETS:
        return None
    path = Path(data)
    if path.is_dir():
        return path
    if path.is_file():
        raise ConfigError(f"{path} is a file; give the folder that holds the images")
    if own or "/" in str(data) or "." in str(data):
        raise ConfigError(f"there is no folder {path}; give a folder of images, or a data set of dmt list")
    known = [name for name in presets.PRESETS if name not in presets.OWN]
    raise ConfigError(f"there is no folder '{data}' and no data set of that name; {instead(str(data), known)}")


def prepare(images: Path, request: Request, folder: Folder, conditions: Conditions) -> Prepared:
    """Everything for a folder of images: chosen and checked when a run is new, as it was when it is resumed.

    Args:
        folder: of the run.
    """
    preset, notes = _chosen(images, request, folder, conditions)
    warnings = _errors(images, request, folder, conditions)
    settings = _settings(request, folder)
    config = configuration.override(preset.config, settings)
    methods = request.methods_or(*_usual(config, request.baseline, folder))
    notes += _instead(settings) if notes else ()
    if request.budget is None or not methods or folder.begun:
        return Prepared(preset, config, methods, images, notes, warnings)
    fitting, fitted = _within_budget(config, images, methods, conditions)
    before, after = config.recipe.epochs, fitting.recipe.epochs
    shortened = f"epochs={after} instead of {before}" if after <= SHORT * before else ""
    return Prepared(preset, fitting, methods, images, notes + fitted, warnings, shortened=shortened)


def _chosen(images: Path, request: Request, folder: Folder, conditions: Conditions) -> tuple[Preset, tuple[str, ...]]:
    """What was chosen for a user's folder: now, or when the run to resume was made."""
    if not folder.begun:
        asked = Asked.of(request.settings, request.starts)
        setup = choosing.choose(images, conditions.execution.device, asked)
        return setup.preset, (*setup.contents.notes, *setup.lines)
    known = presets.get(folder.manifest()["data"])
    if known.name not in presets.OWN:
        raise RunError(f"{folder.path} was made for '{known.name}', not for your images; give another --out")
    return replace(known, config=reading.configuration_of(folder)), ()


def _errors(images: Path, request: Request, folder: Folder, conditions: Conditions) -> tuple[str, ...]:
    """What `dmt check` calls errors, looked for once in the life of a run: a new one with any is refused.

    A run from before there was this check is resumed, and from then on says what is wrong.
    """
    if folder.begun and (known := folder.warnings()) is not None:
        return known
    found = precheck.errors(images, conditions.watcher)
    if not (request.anyway or folder.begun):
        precheck.require_none(images, found)
    return found


def _settings(request: Request, folder: Folder) -> Mapping[str, Any]:
    """Those asked for, but what was fitted to a budget when the run was new stays as it is."""
    if request.budget is None or not folder.begun:
        return request.settings
    return {key: value for key, value in request.settings.items() if key not in planning.SHORTENED}


def _usual(config: Config, compared: bool, folder: Folder) -> list[str]:
    """What is trained if nobody asks for methods; in a run that is resumed, what folds of its labels preferred."""
    preferred = folder.manifest().get("search", {}).get("method") if folder.begun else None
    beside, usual = catalogue.baseline().name, preferred or catalogue.default().name
    if not config.data.sizes.unlabeled:
        return [beside]
    return [beside, usual] if compared else [usual]


def _instead(settings: Mapping[str, Any]) -> tuple[str, ...]:
    said = ", ".join(f"{key}={value}" for key, value in settings.items())
    return (f"you set instead: {said}",) if said else ()


def _within_budget(
    config: Config, images: Path, methods: Sequence[str], conditions: Conditions
) -> tuple[Config, tuple[str, ...]]:
    """A schedule for the time that is left after timing a few steps."""
    contents = opening.contents_of(config.data, images)
    rates = rehearsal.rehearse(config, contents, conditions.execution, methods)
    return planning.within(config, contents, rates, conditions.stop.left, methods)
