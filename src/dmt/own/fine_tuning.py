"""All of a net learns instead of its last layer: the options for that, tried where folds of the labels can tell."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dmt import config as configuration
from dmt.config import Config
from dmt.data.folders.photo_options import PhotoOptions
from dmt.models import names
from dmt.own import schedules
from dmt.tasks.base import Task

NAMED = ("net", "net_b", "stored_views")
"""Options with which a user says which part of a net learns."""


@dataclass(frozen=True)
class FineTuning:
    """A user's folder for nets all of which learn.

    Attributes:
        config: every option.
        task: in images, not in features.
    """

    config: Config
    task: Task


def of(config: Config, task: Task, settings: Mapping[str, Any], large: bool) -> FineTuning | None:
    """The same encoders, all of which learn; None if only last layers were asked for, or none are trained.

    Args:
        settings: what a user has set. It stays.
        large: there is a GPU; a CPU would take an hour for what that does in a minute, so there it is None too.
    """
    data = config.data
    if not large or not (isinstance(data, PhotoOptions) and config.stores_features("A")) or set(NAMED) & set(settings):
        return None
    data = replace(data, stored_views=0, augment="photo")
    recipe = schedules.for_tuning(data, large=True, alike=config.net_b in (None, config.net))
    net_b = None if config.net_b is None else _tuned(config.net_b)
    tuned = Config(data, recipe, _tuned(config.net), net_b)
    return FineTuning(configuration.override(tuned, settings), task)


def _tuned(net: str) -> str:
    return f"tuned:{names.inner(net)}"
