"""Configuration: nested, typed, frozen dataclasses, changed by flat keys such as ``gamma`` or ``online.threshold``."""

import dataclasses
import tomllib
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dmt import option_values
from dmt.core import labeling_views
from dmt.data.folders import tar_places
from dmt.data.folders.photo_options import PhotoMaskOptions, PhotoOptions
from dmt.data.images.options import DataOptions
from dmt.data.pixels.segment_options import SegmentOptions
from dmt.errors import ConfigError, unknown
from dmt.methods import catalogue
from dmt.methods.groups import CBSTOptions
from dmt.methods.method import Labeled
from dmt.methods.recipe import Recipe
from dmt.models import names
from dmt.options import option, require

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MOVED = {"epochs_online": "online.epochs", "threshold": "online.threshold"}
"""Renamed options, old name to new name: users who give the old one get an error with the new one, older runs load."""

SEEDS = 1000
"""The largest number of seeds that one command accepts."""

Holder = TypeVar("Holder", bound="DataclassInstance")


PLACES = "shards"
"""The option that locates the images. Results depend on the images, not on their location, so it may change."""


@dataclass(frozen=True)
class Config:
    """Everything that a result depends on, apart from the method and the seed."""

    data: DataOptions | SegmentOptions | PhotoOptions | PhotoMaskOptions
    recipe: Recipe
    net: str = option("resnet8-16", "the net, see `dmt list`")
    net_b: str | None = option(None, "pair: the net of line B, if it should differ")
    output_stride: int = option(
        names.OUTPUT_STRIDE, "DeepLab: pixels from one feature to the next, 8 or 16 (faster, coarser)", neutral=True
    )

    def net_of(self, line: str) -> str:
        """Return the name of the net that a line trains."""
        net = self.net_b if line == "B" and self.net_b is not None else self.net
        return names.with_stride(net, self.output_stride)

    def stores_features(self, line: str) -> bool:
        """Whether the nets of a line train on stored features, which their frozen encoder computes once."""
        stored = isinstance(self.data, PhotoOptions) and self.data.stored_views > 0
        return stored and names.kind(self.net_of(line)) == "frozen"


def flat(config: Config) -> dict[str, Any]:
    """Return the values of all options by key; options of one method are named ``group.key``."""
    return {key: getattr(holder, field.name) for key, (holder, field) in _holders(config).items()}


def helps(config: Config) -> dict[str, str]:
    """Return the help text of all options by key."""
    return {key: field.metadata["help"] for key, (_, field) in _holders(config).items()}


def described(config: Config) -> dict[str, str]:
    """Return the help text and current value of every option that a user may set, by key."""
    values = flat(config)
    return {key: f"{text} [{shown(values[key])}]" for key, text in helps(config).items() if key != "dataset"}


def shown(value: Any) -> str:
    """Format a value as a user would type it."""
    if isinstance(value, tuple | list):
        return ",".join(map(shown, value))
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return short if float(short := f"{value:g}") == value else repr(value)
    return str(value)


def override(config: Config, changes: Mapping[str, Any]) -> Config:
    """Return a configuration with some options changed.

    Args:
        changes: values by key, ``{"online.epochs": 3}``, or with a group as a table, ``{"online": {"epochs": 3}}``.
            Values may be text, as typed by a user, or TOML values.

    Raises:
        ConfigError: if a key is unknown, or a value is invalid or does not go with the others.
    """
    changes = dotted(changes)
    _require_known(config, changes)
    if changes.get("dataset", config.data.dataset) != config.data.dataset:
        raise ConfigError(f"the data set is {config.data.dataset} here; name another preset instead of setting dataset")
    groups = config.recipe.groups
    own = (_changed(groups[kind], changes, f"{name}.") for name, kind in catalogue.groups().items())
    recipe = dataclasses.replace(_changed(config.recipe, changes), groups=groups.replace(*own))
    new = dataclasses.replace(_changed(config, changes), data=_changed(config.data, changes), recipe=recipe)
    if new.net_b is not None and new.recipe.shape != "pair":
        raise ConfigError("net_b is the second net of a pair; set shape=pair too")
    require("output_stride", new.output_stride, new.output_stride in (8, 16), "8 or 16")
    if new.data.sizes.pixels:
        every = new.recipe.weight_every
        require("weight_every", every, every == 1, "1 where pixels get labels: it remembers one label an image")
        soft = new.recipe.soft_labels
        require("soft_labels", soft, not soft, "false where pixels get labels: only one label of each is stored")
        balanced = new.recipe.groups[CBSTOptions].renormalized
        require("cbst.renormalized", balanced, not balanced, "false where pixels get labels, for the same reason")
        require("pretrain", new.recipe.pretrain, new.recipe.pretrain == "none", "none where pixels get labels")
        statistics = new.recipe.batchnorm
        require("batchnorm", statistics, statistics == "running", "running where pixels get labels")
    _require_serving(new.recipe.online_stage, new.data.sizes.pixels)
    pretrain, frozen = new.recipe.pretrain, any(names.is_frozen(new.net_of(line)) for line in "AB")
    require("pretrain", pretrain, pretrain == "none" or not frozen, "none where the encoder stays as it is")
    views = labeling_views.every(new.recipe.labeling_views)
    for view in views:
        new.data.require_shown(view)
    if isinstance(new.data, PhotoOptions) and any(view.mirrored for view in views):
        stored = new.data.stored_views
        require(
            "stored_views", stored, stored != 1, "2 or more for labeling_views=flip, the second is the mirror image"
        )
    return new


def _require_serving(online_stage: str, pixels: bool) -> None:
    """Refuse an online stage whose method does not support this kind of data, whole images or pixels."""
    if online_stage != "none":
        labeled: Labeled = "pixels" if pixels else "images"
        serving = labeled in catalogue.get(online_stage).serves
        require("online_stage", online_stage, serving, f"none, or a method that labels {labeled}")


def _changed(holder: Holder, changes: Mapping[str, Any], prefix: str = "") -> Holder:
    """Return a copy of a dataclass of options with the changes that concern it."""
    found = [(key, field.name) for key, field in _options(holder, prefix).items() if key in changes]
    if not found:
        return holder
    hints = typing.get_type_hints(type(holder))
    return dataclasses.replace(
        holder, **{name: option_values.parse(key, changes[key], hints[name]) for key, name in found}
    )


def _require_known(config: Config, keys: typing.Iterable[str]) -> None:
    """Refuse an unknown key and suggest the nearest known one, from its own group if there is such a group."""
    known, groups = flat(config), catalogue.groups()
    for key in keys:
        group, dot, _ = key.partition(".")
        if key in known:
            continue
        if key in MOVED:
            raise ConfigError(f"{key} is called {MOVED[key]} now; give that instead")
        if dot and group not in groups:
            raise unknown("group of options", group, groups, "dmt list options")
        near = [each for each in known if each.startswith(f"{group}.")]
        raise unknown("option", key, near or known, "dmt list options")


def renamed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recorded options of an older run by their current names."""
    return {MOVED.get(key, key): value for key, value in options.items()}


def recorded(defaults: Config, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of an older run: the recorded ones, and current values for those added since.

    An added option gets the value of the run's preset, except a neutral one: it gets its default, which trains as
    before it was added, even if the preset has set another value since.

    Raises:
        ConfigError: if a recorded option no longer exists. Its effect is unknown, so the run cannot be resumed.
    """
    known, written = flat(defaults), renamed(options)
    for key, value in written.items():
        if key not in known:
            raise ConfigError(
                f"the run was made with {key}={shown(value)}, an option that this release does not have; "
                f"resume it with the release that made it"
            )
    neutral = {key: each.default for key, (_, each) in _holders(defaults).items() if each.metadata.get("neutral")}
    return known | neutral | written


def given(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a user's settings by flat key, with the locations of shards made absolute."""
    found = dotted(changes)
    places: Any = found.get(PLACES)
    if isinstance(places, str) or (option_values.listed(places) and all(isinstance(each, str) for each in places)):
        found[PLACES] = tar_places.named(places)
    return found


def dotted(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten tables, ``{"online": {"epochs": 3}}`` to ``{"online.epochs": 3}``; values become those of Python."""
    if not isinstance(changes, Mapping):
        raise ConfigError(f"settings are values by option, such as {{'gamma': 5}}, not {changes!r}")
    found: dict[str, Any] = {}
    for key, value in changes.items():
        if not isinstance(key, str):
            raise ConfigError(f"an option is given by its name, such as 'gamma', not {key!r}; see dmt list options")
        inner = {f"{key}.{name}": each for name, each in value.items()} if isinstance(value, Mapping) else {key: value}
        found |= {name: option_values.plain(each) for name, each in inner.items()}
    return found


def from_toml(path: Path) -> dict[str, Any]:
    """Read settings by flat key from a TOML file, in which the options of one method are a table."""
    try:
        if path.exists() and not path.is_file():
            raise ConfigError(f"cannot read {path}: it is not a regular file; give a TOML file")
        return dotted(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # invalid TOML or UTF-8, or numbers with too many digits
        raise ConfigError(f"{path} is not valid TOML: {error}") from error


def from_pairs(pairs: typing.Iterable[str]) -> dict[str, str]:
    """Parse ``["gamma=5"]`` to ``{"gamma": "5"}``."""
    result = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--set takes key=value, not '{pair}'; e.g. --set gamma=5")
        result[key.strip()] = value.strip()
    return result


def seeds(text: str) -> list[int]:
    """Parse seeds from text such as ``1-3``, ``1,4,7`` or ``1-3,7``."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            named = range(int(first), int(last if dash else first) + 1)
        except ValueError:
            raise ConfigError(f"--seeds takes 1-3 or 1,4,7, not '{text}'") from None
        if not named:
            raise ConfigError(f"--seeds {text} counts down; write {last.strip()}-{first.strip()}")
        if named.stop - named.start > SEEDS - len(found):
            raise ConfigError(f"--seeds {text} names more than {SEEDS:,} seeds; give fewer")
        found += named
    return list(dict.fromkeys(found))  # each once, in the order given


def _holders(config: Config) -> dict[str, tuple[Any, dataclasses.Field[Any]]]:
    """Return the dataclass that holds each option, and its field there, by key. Keys are unique."""
    own = [(config.recipe.groups[kind], f"{name}.") for name, kind in catalogue.groups().items()]
    everyone = [(config, ""), (config.data, ""), (config.recipe, ""), *own]
    return {key: (each, field) for each, prefix in everyone for key, field in _options(each, prefix).items()}


def _options(holder: Any, prefix: str) -> dict[str, dataclasses.Field[Any]]:
    """Return the fields of a dataclass that a user may set, by key."""
    return {f"{prefix}{field.name}": field for field in dataclasses.fields(holder) if "help" in field.metadata}
