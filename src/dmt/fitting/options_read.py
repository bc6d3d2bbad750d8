"""Which training options a run reads: those whose change changes the plan of one of its methods."""

import types
import typing
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dmt import config as configuration
from dmt import option_values
from dmt.config import Config
from dmt.core import ramps
from dmt.errors import ConfigError
from dmt.methods import catalogue
from dmt.methods.plan import Plan
from dmt.methods.recipe import Recipe

VALUES = ("none", "true", "false", "0", "0.3", "0.6", "2", "3", "dropout", *ramps.RATES)
"""Values to change an option to, besides its named choices; those that it does not take are passed over."""

STANDS_FOR = {"stop_rounds": "fractions"}
"""An option that ends rounds without being part of a plan, and one that every plan with rounds reads."""


def note(methods: Sequence[str], config: Config, keys: Iterable[str]) -> tuple[str, ...]:
    """Return a line that names those options which none of the methods reads; nothing if there are none."""
    known = _kinds()
    unread = [key for key in keys if key in known and _matters(methods, [config], key) is False]
    return (f"note: nothing that is trained here reads {', '.join(unread)}",) if unread else ()


def unread_by(method: str, config: Config) -> set[str]:
    """Return those options of all methods that one of them never reads.

    The choices of other options are tried one by one: ``share``, for example, is read with ``shape=pair``.
    """
    shared = [key for key in _kinds() if "." not in key]
    choices = (each for key in shared for each in _changed(config, key, _words(_kinds()[key])))
    plan = _plan(method, config)
    configs = [config, *(each for each in choices if _plan(method, each) != plan)]
    return {key for key in shared if not _matters([method], configs, key)}


def _matters(methods: Sequence[str], configs: Iterable[Config], key: str) -> bool | None:
    """Return whether changing an option changes a plan; None if it cannot be changed alone."""
    found = None
    for config in configs:
        plans = [_plan(method, config) for method in methods]
        for other in _changed(config, STANDS_FOR.get(key, key)):
            if [_plan(method, other) for method in methods] != plans:
                return True
            found = False
    return found


def _changed(config: Config, key: str, values: Iterable[str] | None = None) -> Iterator[Config]:
    """Yield the configuration with other values of an option, by default with all that are worth a try."""
    kind, now = _kinds()[key], configuration.flat(config)[key]
    for text in (*_words(kind), *VALUES) if values is None else values:
        try:
            if option_values.parse(key, text, kind) != now:
                yield configuration.override(config, {key: text})
        except ConfigError:
            continue


def _plan(method: str, config: Config) -> Plan | None:
    try:
        return catalogue.plan(method, config.recipe)
    except ConfigError:  # the method reads what makes no sense to it
        return None


def _kinds() -> dict[str, Any]:
    """Return the types of the options of all methods and of single ones, by key."""
    holders = {"": Recipe} | {f"{name}.": group for name, group in catalogue.groups().items()}
    kinds = {
        f"{prefix}{key}": kind for prefix, each in holders.items() for key, kind in typing.get_type_hints(each).items()
    }
    return {
        key: kind for key, kind in kinds.items() if typing.get_origin(kind) is not typing.ClassVar and key != "groups"
    }


def _words(kind: Any) -> tuple[str, ...]:
    """Return the named choices of an option, ``none`` included."""
    if kind is types.NoneType:
        return ("none",)
    if typing.get_origin(kind) is typing.Literal:
        return typing.get_args(kind)
    return tuple(word for inner in typing.get_args(kind) for word in _words(inner))
