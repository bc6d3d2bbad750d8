"""Facts of methods: asked for on the entry, never told by a name."""

import ast
import dataclasses
from pathlib import Path

import pytest

from dmt.errors import ConfigError
from dmt.fitting import run
from dmt.methods import catalogue
from dmt.methods.method import COLORS, Method, color_of

SOURCES = sorted((Path(__file__).parents[2] / "src" / "dmt").rglob("*.py"))


@pytest.mark.parametrize("method", catalogue.METHODS.values(), ids=lambda method: method.name)
def test_every_entry_is_complete(method: Method) -> None:
    assert catalogue.get(method.name) is method
    assert method.title
    assert method.summary
    assert method.serves
    assert not (method.baseline and method.ceiling)
    assert method.compared or not method.semi_supervised
    assert method.reference or not method.compared
    assert 0 <= method.color < COLORS
    assert (method.color == 0) == method.baseline


def test_there_is_one_baseline_one_ceiling_and_one_default() -> None:
    facts = [(method.baseline, method.ceiling) for method in catalogue.METHODS.values()]
    assert (facts.count((True, False)), facts.count((False, True))) == (1, 1)
    assert (catalogue.baseline().title, catalogue.ceiling().title) == ("Baseline", "Oracle")
    assert catalogue.default().title == "DMT"


def test_a_baseline_goes_beside_what_is_compared() -> None:
    assert catalogue.with_baseline(["dmt", "cl", "dmt"]) == ["dmt", "cl", "baseline"]
    assert catalogue.with_baseline(["baseline", "dmt"]) == ["baseline", "dmt"]
    assert catalogue.with_baseline(["oracle"]) == ["oracle"]
    with pytest.raises(ConfigError, match="unknown method 'nope'; dmt list methods lists all"):
        catalogue.get("nope")
    with pytest.raises(ConfigError, match="did you mean 'dmt'"):
        catalogue.with_baseline(["dmtt"])


def test_a_color_without_an_entry_is_stable_and_not_gray() -> None:
    assert color_of("from a later release") == color_of("from a later release")
    assert 0 not in {color_of(f"method {number}") for number in range(100)}
    assert dataclasses.replace(catalogue.default(), tint=None).color == color_of("dmt")


def test_a_method_is_refused_for_what_it_does_not_label(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    only = dataclasses.replace(catalogue.default(), name="only", title="Only", serves=("pixels",))
    monkeypatch.setitem(catalogue.METHODS, "only", only)
    with pytest.raises(ConfigError, match="Only labels pixels, and here images get labels; see dmt list methods"):
        run.fit("digits", method="only", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_nobody_tells_methods_apart_by_name(path: Path) -> None:
    if path.name in ("presets.py", "catalogue.py"):
        return
    words = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
    assert not words & {catalogue.baseline().name, catalogue.ceiling().name}
