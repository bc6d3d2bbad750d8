"""What there is to choose from, as `dmt list` shows it: sections of names, each with its line."""

from collections.abc import Callable

from dmt import config as configuration
from dmt import presets
from dmt.errors import ConfigError
from dmt.methods import catalogue
from dmt.methods.method import Method
from dmt.models import build

Section = dict[str, str]
"""Name -> line."""


def sections(what: str | None) -> dict[str, Section]:
    """Title -> section, of what was asked for, or of data sets, methods and nets."""
    known: dict[str, Callable[[], dict[str, Section]]] = {
        "data": lambda: {"data": {name: preset.summary for name, preset in presets.PRESETS.items()}},
        "methods": lambda: {"methods": {name: _method_line(method) for name, method in catalogue.METHODS.items()}},
        "nets": lambda: {"nets": build.NETS},
        "options": lambda: _options("digits"),
        "pixel-options": lambda: _options("scenes"),
    }
    if what is not None and what not in known:
        raise ConfigError(f"dmt list takes {', '.join(known)}, not '{what}'")
    wanted = [what] if what else ["data", "methods", "nets"]
    return {title: lines for each in wanted for title, lines in known[each]().items()}


def _options(preset: str) -> dict[str, Section]:
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
