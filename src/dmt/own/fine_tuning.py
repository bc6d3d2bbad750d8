"""Options for fine-tuning whole nets instead of their last layers, a choice that cross-validation makes."""

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
"""Options with which a user decides which part of a net is trained."""


@dataclass(frozen=True)
class FineTuning:
    """Configuration and task for fine-tuning whole nets on a user's folder.

    Attributes:
        config: all options.
        task: the data as images, not as stored features.
    """

    config: Config
    task: Task


def of(config: Config, task: Task, settings: Mapping[str, Any], large: bool) -> FineTuning | None:
    """Return a configuration that fine-tunes the same encoders.

    Args:
        config: the configuration that trains last layers on stored features.
        task: the data as images.
        settings: options set by the user, which are kept.
        large: whether there is a GPU. A CPU would take an hour for what a GPU does in a minute.

    Returns:
        None without a GPU, if the configuration does not store features, or if the user set an option in `NAMED`.
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
