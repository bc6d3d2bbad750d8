"""Configuration: frozen, typed, nested, and overridden by flat keys: ``gamma=5``, ``online.threshold=0.95``."""

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
"""Options that had another name: who types it is told the new one, and older runs are read by it."""

SEEDS = 1000
"""How many a user can mean at once."""

Holder = TypeVar("Holder", bound="DataclassInstance")


PLACES = "shards"
"""The option that says where images are: what they are counts for a result, not that."""


@dataclass(frozen=True)
class Config:
    """Everything that decides a result, apart from the method and the seed."""

    data: DataOptions | SegmentOptions | PhotoOptions | PhotoMaskOptions
    recipe: Recipe
    net: str = option("resnet8-16", "the net, see `dmt list`")
    net_b: str | None = option(None, "pair: the net of line B, if it should differ")
    output_stride: int = option(
        names.OUTPUT_STRIDE, "DeepLab: pixels from one feature to the next, 8 or 16 (faster, coarser)", neutral=True
    )

    def net_of(self, line: str) -> str:
        """The net that a line trains."""
        net = self.net_b if line == "B" and self.net_b is not None else self.net
        return names.with_stride(net, self.output_stride)

    def stores_features(self, line: str) -> bool:
        """Whether the nets of a line learn from features that their frozen encoder gives once."""
        stored = isinstance(self.data, PhotoOptions) and self.data.stored_views > 0
        return stored and names.kind(self.net_of(line)) == "frozen"


def flat(config: Config) -> dict[str, Any]:
    """All keys with their values; those of a method's own group as ``group.key``."""
    return {key: getattr(holder, field.name) for key, (holder, field) in _holders(config).items()}


def helps(config: Config) -> dict[str, str]:
    """All keys with their line of help."""
    return {key: field.metadata["help"] for key, (_, field) in _holders(config).items()}


def described(config: Config) -> dict[str, str]:
    """All keys a user may set, with their line of help and their value here."""
    values = flat(config)
    return {key: f"{text} [{shown(values[key])}]" for key, text in helps(config).items() if key != "dataset"}


def shown(value: Any) -> str:
    """A value as a user would type it."""
    if isinstance(value, tuple | list):
        return ",".join(map(shown, value))
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def override(config: Config, changes: Mapping[str, Any]) -> Config:
    """A configuration with some keys changed.

    Args:
        changes: by key, ``{"online.epochs": 3}``, or with a group as a table, ``{"online": {"epochs": 3}}``. Values may
            be text, as typed by a user, or TOML values.
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
    """Refuse an online stage of a method that labels something else than this data set's images or pixels."""
    if online_stage != "none":
        labeled: Labeled = "pixels" if pixels else "images"
        serving = labeled in catalogue.get(online_stage).serves
        require("online_stage", online_stage, serving, f"none, or a method that labels {labeled}")


def _changed(holder: Holder, changes: Mapping[str, Any], prefix: str = "") -> Holder:
    """One dataclass with those of its options changed that are named."""
    found = [(key, field.name) for key, field in _options(holder, prefix).items() if key in changes]
    if not found:
        return holder
    hints = typing.get_type_hints(type(holder))
    return dataclasses.replace(
        holder, **{name: option_values.parse(key, changes[key], hints[name]) for key, name in found}
    )


def _require_known(config: Config, keys: typing.Iterable[str]) -> None:
    """Refuse a key that does not exist, naming the nearest: in its own group, if there is such a group."""
    known, groups = flat(config), catalogue.groups()
    for key in keys:
        group, dot, _ = key.partition(".")
        if key in known:
            continue
        if key in MOVED:
            raise ConfigError(f"{key} is called {MOVED[key]} now; give that instead")
        if dot and group not in groups:
            raise unknown("group of options", group, groups)
        raise unknown("option", key, [each for each in known if each.startswith(f"{group}.")] or known)


def renamed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options that an older run wrote down, by the names they have now."""
    return {MOVED.get(key, key): value for key, value in options.items()}


def recorded(defaults: Config, options: Mapping[str, Any]) -> dict[str, Any]:
    """All options of an older run: those it wrote down, and for those added since what its preset gives them.

    A neutral one was added with a default that trains as before, so that is what the run had, whatever its preset has
    been given since.

    Raises:
        ConfigError: if it had one that is gone. Whether it mattered is not known, so it counts.
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
    """Settings as a user gives them: tables dissolved, and files named so that they are found from any folder."""
    found = dotted(changes)
    places: Any = found.get(PLACES)
    if isinstance(places, str) or (option_values.listed(places) and all(isinstance(each, str) for each in places)):
        found[PLACES] = tar_places.named(places)
    return found


def dotted(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Tables dissolved: ``{"online": {"epochs": 3}}`` to ``{"online.epochs": 3}``."""
    found: dict[str, Any] = {}
    for key, value in changes.items():
        found |= (
            {f"{key}.{inner}": each for inner, each in value.items()} if isinstance(value, Mapping) else {key: value}
        )
    return found


def from_toml(path: Path) -> dict[str, Any]:
    """Flat keys from a TOML file, in which a method's own group is a table."""
    try:
        if path.exists() and not path.is_file():
            raise ConfigError(f"cannot read {path}: it is not a regular file; give a TOML file")
        return dotted(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # of TOML, of UTF-8, of numbers that are too long
        raise ConfigError(f"{path} is not valid TOML: {error}") from error


def from_pairs(pairs: typing.Iterable[str]) -> dict[str, str]:
    """``["gamma=5"]`` to ``{"gamma": "5"}``."""
    result = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--set takes key=value, not '{pair}'; e.g. --set gamma=5")
        result[key.strip()] = value.strip()
    return result


def seeds(text: str) -> list[int]:
    """``1-3`` or ``1,4,7`` or both."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            named = range(int(first), int(last if dash else first) + 1)
        except ValueError:
            raise ConfigError(f"--seeds takes 1-3 or 1,4,7, not '{text}'") from None
        if named.stop - named.start > SEEDS - len(found):
            raise ConfigError(f"--seeds {text} names more than {SEEDS:,} seeds; give fewer")
        found += named
    if not found:
        raise ConfigError(f"--seeds {text} names no seed")
    return found


def _holders(config: Config) -> dict[str, tuple[Any, dataclasses.Field[Any]]]:
    """Which dataclass holds which key, and as which field. Keys are unique."""
    own = [(config.recipe.groups[kind], f"{name}.") for name, kind in catalogue.groups().items()]
    everyone = [(config, ""), (config.data, ""), (config.recipe, ""), *own]
    return {key: (each, field) for each, prefix in everyone for key, field in _options(each, prefix).items()}


def _options(holder: Any, prefix: str) -> dict[str, dataclasses.Field[Any]]:
    """Fields of a dataclass that a user may set, by key."""
    return {f"{prefix}{field.name}": field for field in dataclasses.fields(holder) if "help" in field.metadata}
