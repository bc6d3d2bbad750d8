"""What `dmt list` shows: data sets, methods, nets and options, in sections of names with one line each."""

from collections.abc import Callable

from dmt import config as configuration
from dmt import presets
from dmt.errors import ConfigError, unknown
from dmt.fitting import options_read
from dmt.methods import catalogue
from dmt.methods.method import Method
from dmt.methods.online import StageOptions
from dmt.models import build
from dmt.options import described

Section = dict[str, str]
"""Name -> line about it."""


EMBEDDED = {"images": "digits", "pixels": "scenes"}
"""The data sets whose default options are shown if none is named."""

EACH = "METHOD"
"""Placeholder for the group of an online method, in options that all online methods share."""


def sections(what: str | None, of: str | None = None) -> dict[str, Section]:
    """Return title -> section for what was asked for; by default for data sets, methods and nets.

    Args:
        what: which section; None for the default.
        of: with "options", a method or a data set.
    """
    if of is not None:
        if what != "options":
            raise ConfigError(f"only dmt list options takes the name of a method or data set, here '{of}'")
        return _options_of(of)
    known: dict[str, Callable[[], dict[str, Section]]] = {
        "data": lambda: {"data": {name: preset.summary for name, preset in presets.PRESETS.items()}},
        "methods": lambda: {"methods": {name: _method_line(method) for name, method in catalogue.METHODS.items()}},
        "nets": lambda: {"nets": build.NETS},
        "options": lambda: _options(EMBEDDED["images"]),
        "pixel-options": lambda: _options(EMBEDDED["pixels"]),
    }
    if what is not None and what not in known:
        raise ConfigError(f"dmt list takes {', '.join(known)}, not '{what}'")
    wanted = [what] if what else ["data", "methods", "nets"]
    return {title: lines for each in wanted for title, lines in known[each]().items()}


def _options(preset: str) -> dict[str, Section]:
    """Return every option with its help and default: those of all methods, of online methods, and of single methods.

    Options that online methods share are listed once; for each of them, only what it adds or changes.
    """
    lines = configuration.described(presets.get(preset).config)
    found = {"options": _own(lines, None)}
    usual = {key: f"{text} [{configuration.shown(value)}]" for key, (text, value) in described(StageOptions).items()}
    found["options of each online method"] = {f"{EACH}.{key}": text for key, text in usual.items()}
    for group in catalogue.groups():
        own = {key: text for key, text in _own(lines, group).items() if usual.get(key.split(".")[1]) != text}
        if own:
            found[_title(group)] = own
    return found


def _options_of(name: str) -> dict[str, Section]:
    """Return the options that a method and its Baseline read, or all options with the defaults of a data set."""
    if name in presets.PRESETS:
        return _options(name)
    if name not in catalogue.METHODS:
        raise unknown("method or data set", name, [*catalogue.METHODS, *presets.PRESETS], "dmt list")
    method = catalogue.get(name)
    config = presets.get(EMBEDDED[method.serves[0]]).config
    lines, unread = configuration.described(config), options_read.unread_by(name, config)
    found = {"options": {key: text for key, text in _own(lines, None).items() if key not in unread}}
    beside = unread - options_read.unread_by(catalogue.baseline().name, config) if method.compared else set()
    if beside:
        title = f"options of the {catalogue.baseline().title} beside it"
        found[title] = {key: text for key, text in lines.items() if key in beside}
    if method.options is not None:
        found[_title(method.options.group)] = _own(lines, method.options.group)
    return found


def _own(lines: Section, group: str | None) -> Section:
    """Return the options of one group; with None, those that belong to no group."""
    return {key: text for key, text in lines.items() if (key.split(".")[0] if "." in key else None) == group}


def _title(group: str) -> str:
    return f"options of {', '.join(method.title for method in catalogue.owners(group))}"


def _method_line(method: Method) -> str:
    only = "" if len(method.serves) > 1 else f"; {method.serves[0]} only"
    return f"{method.summary}{only}" + (f" ({method.reference})" if method.reference else "")
