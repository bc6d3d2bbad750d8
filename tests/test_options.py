"""What an identity holds of a dataclass."""

import dataclasses
import json
from dataclasses import dataclass

import pytest

from dmt import presets
from dmt.methods import catalogue
from dmt.options import content, neutral, option


@dataclass(frozen=True)
class Inner:
    width: int = option(3, "how wide")
    added: float | None = option(None, "came later", neutral=True)


@dataclass(frozen=True)
class Outer:
    inner: Inner
    several: tuple[Inner, ...] = ()
    table: dict[str, Inner] = dataclasses.field(default_factory=dict)
    lines: int = neutral(1)


def test_a_neutral_field_counts_from_where_it_differs() -> None:
    assert content(Inner()) == {"width": 3}
    assert content(Inner(added=0.0)) == {"width": 3, "added": 0.0}
    assert content(Inner(width=4)) == {"width": 4}


def test_whatever_is_nested_is_looked_through() -> None:
    plain = Outer(Inner(), (Inner(4), Inner()), {"a": Inner(5)})
    assert content(plain) == {
        "inner": {"width": 3},
        "several": [{"width": 4}, {"width": 3}],
        "table": {"a": {"width": 5}},
    }
    changed = Outer(Inner(added=1.0), (Inner(added=2.0),), {"a": Inner(added=3.0)}, lines=2)
    assert content(changed) == {
        "inner": {"width": 3, "added": 1.0},
        "several": [{"width": 3, "added": 2.0}],
        "table": {"a": {"width": 3, "added": 3.0}},
        "lines": 2,
    }


@pytest.mark.parametrize("method", catalogue.METHODS)
def test_without_neutral_fields_it_is_what_asdict_gives(method: str) -> None:
    """So that nothing changes where nothing is neutral."""
    for stage in catalogue.plan(method, presets.get("scenes").config.recipe).stages:
        for part in (stage.schedule, stage.labels, stage.share):
            if part is not None and not any("neutral" in each.metadata for each in dataclasses.fields(part)):
                assert json.dumps(content(part)) == json.dumps(dataclasses.asdict(part))
