"""A method's own options: a class, and its name in the catalogue's entry. Everything else follows."""

import dataclasses
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from typer.testing import CliRunner

from dmt import config, presets
from dmt.cli.app import app
from dmt.errors import ConfigError
from dmt.methods import catalogue
from dmt.methods.groups import Groups, MethodOptions, OnlineOptions
from dmt.methods.method import Method
from dmt.methods.plan import Plan
from dmt.methods.recipe import Recipe
from dmt.objectives.itself import Online
from dmt.options import option
from dmt.tuning import search_space

BASE = presets.get("digits").config


@dataclass(frozen=True)
class NewOptions(MethodOptions):
    group: ClassVar[str] = "brand_new"

    strength: float = option(1.0, "how strong")
    names: str | None = option(None, "some names")


def build(recipe: Recipe, own: NewOptions) -> Plan:
    return catalogue.plan("baseline", dataclasses.replace(recipe, rate=own.strength))


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = dataclasses.replace(
        catalogue.default(), name="brand-new", title="Brand New", build=build, options=NewOptions
    )
    monkeypatch.setitem(catalogue.METHODS, entry.name, entry)


@pytest.mark.parametrize("method", catalogue.METHODS.values(), ids=lambda method: method.name)
def test_a_method_is_built_from_the_options_it_names(method: Method) -> None:
    wanted = [each for each in inspect.signature(method.build).parameters.values() if each.default is each.empty]
    assert len(wanted) == (1 if method.options is None else 2)
    if method.options is not None:
        assert wanted[1].annotation is method.options
        assert all("help" in field.metadata for field in dataclasses.fields(method.options))


def test_groups_are_equal_if_their_options_are() -> None:
    assert Groups.of(OnlineOptions()) == Groups()
    changed = Groups().replace(OnlineOptions(epochs=3))
    assert changed == Groups.of(OnlineOptions(epochs=3), NewOptions())
    assert hash(changed) == hash(Groups.of(OnlineOptions(epochs=3)))
    assert (changed[OnlineOptions].epochs, changed[NewOptions].strength) == (3, 1.0)
    assert changed.replace(OnlineOptions()) == Groups()


def test_a_presets_own_default_is_kept_beside_what_is_set() -> None:
    scenes = presets.get("scenes").config
    assert config.flat(scenes)["online.epochs"] == 10
    changed = config.override(scenes, {"online.threshold": "0.5"})
    assert changed.recipe.groups[OnlineOptions] == OnlineOptions(epochs=10, threshold=0.5)
    objective = catalogue.plan("online", changed.recipe)["A1"].objective
    assert isinstance(objective, Online)
    assert objective.threshold == 0.5


@pytest.mark.usefixtures("added")
def test_a_new_group_is_known_everywhere() -> None:
    changed = config.override(BASE, {"brand_new": {"strength": 0.25}, "brand_new.names": "a"})
    assert changed.recipe.groups[NewOptions] == NewOptions(0.25, "a")
    assert config.override(BASE, config.flat(changed)) == changed
    assert catalogue.plan("brand-new", changed.recipe).stages[0].schedule.descent.rate == 0.25
    assert search_space.parse({"brand_new.strength": "1,2"}) == {"brand_new.strength": (1.0, 2.0)}
    listed = CliRunner().invoke(app, ["list", "options"]).output
    assert "options of Brand New:\n  brand_new.strength how strong [1]\n" in listed
    assert "options of Online ST:" in listed


def test_a_group_is_a_table_of_a_toml_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("gamma = 5\n[online]\nepochs = 3\nthreshold = 0\n")
    settings = config.from_toml(path)
    assert settings == {"gamma": 5, "online.epochs": 3, "online.threshold": 0}
    assert config.override(BASE, settings).recipe.groups[OnlineOptions] == OnlineOptions(3, 0.0)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("online.treshold", 1, "unknown option 'online.treshold'; did you mean 'online.threshold'?"),
        ("onlin.threshold", 1, "unknown group of options 'onlin'; did you mean 'online'?"),
        ("online", 1, "unknown option 'online'; did you mean 'online.epochs'?"),
        ("online.threshold", "high", "online.threshold must be a number, not 'high'"),
        ("online.threshold", 1.0, "online.threshold must be at least 0 and below 1, not 1.0"),
        ("online.epochs", 0, "online.epochs must be at least 1, not 0"),
        ("epochs_online", 3, "epochs_online is called online.epochs now"),
        ("threshold", 0.5, "threshold is called online.threshold now"),
    ],
)
def test_mistakes_are_one_line(key: str, value: object, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.override(BASE, {key: value})
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_older_runs_wrote_down_is_read_by_its_new_name() -> None:
    assert config.renamed({"gamma": 5, "epochs_online": 3}) == {"gamma": 5, "online.epochs": 3}
    assert set(config.MOVED.values()) <= set(config.flat(BASE))
