"""Preparation of a run on a user's folder: automatic choices, a check for errors, and a schedule for a budget."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dmt import presets
from dmt.config import Config
from dmt.data.folders import photo_layouts
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
"""Gains over a Baseline are doubted if a budget shortens it to this share of its epochs or less."""


def own_folder(data: str | Path) -> Path | None:
    """Return the folder of images that ``data`` names, or None if it names a preset.

    The names of the presets for users' folders, such as "photos", are read as names of folders.
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
    beside = photo_layouts.folders(Path())
    known = [*(each.name for each in beside), *(name for name in presets.PRESETS if name not in presets.OWN)]
    raise ConfigError(
        f"there is no folder '{data}' and no data set of that name; {instead(str(data), known, 'dmt list data')}"
    )


def prepare(images: Path, request: Request, folder: Folder, conditions: Conditions) -> Prepared:
    """Choose and check everything for a run on a folder of images; a resumed run keeps its choices.

    Args:
        images: the user's folder.
        folder: the folder of the run.
    """
    preset, notes = _chosen(images, request, folder, conditions)
    errors, doubts = _checked(images, request, folder, conditions)
    settings = _settings(request, folder)
    config = choosing.override(preset.config, settings)
    methods = request.methods_or(*_usual(config, request.baseline, folder))
    notes += _instead(settings) if notes else ()
    notes += tuple(f"warning: {each}" for each in doubts)
    if request.budget is None or not methods or folder.begun:
        return Prepared(preset, config, methods, images, notes, errors)
    fitting, fitted = _within_budget(config, images, methods, conditions)
    before, after = config.recipe.epochs, fitting.recipe.epochs
    shortened = f"epochs={after} instead of {before}" if after <= SHORT * before else ""
    return Prepared(preset, fitting, methods, images, notes + fitted, errors, shortened=shortened)


def _chosen(images: Path, request: Request, folder: Folder, conditions: Conditions) -> tuple[Preset, tuple[str, ...]]:
    """Return the preset for a user's folder, with notes about it: a new one, or that of the run to resume."""
    if not folder.begun:
        asked = Asked.of(request.settings, request.starts)
        setup = choosing.choose(images, conditions.execution.device, asked)
        return setup.preset, (*setup.contents.notes, *setup.lines)
    known = presets.get(folder.manifest()["data"])
    if known.name not in presets.OWN:
        raise RunError(f"{folder.path} was made for '{known.name}', not for your images; give another --out")
    return replace(known, config=reading.configuration_of(folder)), ()


def _checked(
    images: Path, request: Request, folder: Folder, conditions: Conditions
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the errors that `dmt check` finds in the folder, and its warnings, which are looked for once per run.

    A new run with errors is refused unless the user insists. A run from a release without this check is checked when
    it is resumed, and reports the errors from then on.
    """
    if folder.begun and (known := folder.warnings()) is not None:
        return known, ()
    found = precheck.check(images, conditions.watcher)
    if not (request.anyway or folder.begun):
        precheck.require_none(images, found.errors)
    return found.errors, found.warnings


def _settings(request: Request, folder: Folder) -> Mapping[str, Any]:
    """Return the user's settings, without those that a budget may have changed when a resumed run was new."""
    if request.budget is None or not folder.begun:
        return request.settings
    return {key: value for key, value in request.settings.items() if key not in planning.SHORTENED}


def _usual(config: Config, compared: bool, folder: Folder) -> list[str]:
    """Return the default methods; in a resumed run, with the method that cross-validation preferred."""
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
    """Fit the schedule to the time that is left after a rehearsal; return it with lines about what was given up."""
    contents = opening.contents_of(config.data, images)
    rates = rehearsal.rehearse(config, contents, conditions.execution, methods)
    return planning.within(config, contents, rates, conditions.stop.left, methods)
