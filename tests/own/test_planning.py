"""Forecasts that count every stage once, and schedules that fit a budget."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.data.folders import photo_layout

from dmt.config import Config
from dmt.core.execution import Execution
from dmt.data.folders.contents import FolderContents
from dmt.methods import catalogue
from dmt.own import choosing, planning
from dmt.own.planning import Rates

CPU = torch.device("cpu")


@pytest.fixture
def images(tmp_path: Path) -> tuple[Config, FolderContents]:
    setup = choosing.choose(photo_layout.write_classes(tmp_path, labeled=5, unlabeled=60, test=2), CPU)
    return setup.preset.config, setup.contents


@pytest.fixture
def pixels(tmp_path: Path) -> tuple[Config, FolderContents]:
    setup = choosing.choose(photo_layout.write_masks(tmp_path, labeled=10, unlabeled=6), CPU)
    return setup.preset.config, setup.contents


def kinds(config: Config) -> set[str]:
    return {type(stage.objective).__name__ for stage in catalogue.plan("dmt", config.recipe).stages}


def rates(config: Config, seconds: float) -> Rates:
    return Rates(reading=0.001, steps=dict.fromkeys(kinds(config), seconds), forward=0.0001)


# --- forecast ---


@pytest.mark.parametrize("kind", ["images", "pixels"])
def test_every_stage_counts_once(kind: str, request: pytest.FixtureRequest) -> None:
    config, contents = request.getfixturevalue(kind)
    stages = catalogue.plan("dmt", config.recipe).stages
    steps = sum(stage.steps(config.data.sizes) for stage in stages)
    only = Rates(0.0, dict.fromkeys(kinds(config), 1.0), 0.0)
    assert planning.forecast(config, contents, only) == steps  # the Baseline is the first stage of DMT
    assert planning.forecast(config, contents, only, ("dmt",)) == steps
    baseline = sum(stage.steps(config.data.sizes) for stage in catalogue.plan("baseline", config.recipe).stages)
    assert planning.forecast(config, contents, only, ("baseline",)) == baseline < steps
    assert planning.forecast(config, replace(contents, unlabeled=()), only) == baseline


def test_reading_and_labeling_count(images: tuple[Config, FolderContents]) -> None:
    config, contents = images
    nothing = Rates(0.0, dict.fromkeys(kinds(config), 0.0), 0.0)
    every = sum(len(part) for _, part in contents.parts())
    assert planning.forecast(config, contents, replace(nothing, reading=1.0)) == every == 15 + 60 + 6
    stages = catalogue.plan("dmt", config.recipe).stages
    scored = 6 + 3  # test, and one of each class held out
    rounds = [stage for stage in stages if stage.labels is not None]  # each labels all, and weighs them when it is done
    expected = 2 * scored * len(stages) + 2 * 60 * len(rounds)  # raw and EMA; teacher and student
    assert planning.forecast(config, contents, replace(nothing, forward=1.0)) == expected


# --- budget ---


@pytest.mark.parametrize("kind", ["images", "pixels"])
@pytest.mark.parametrize("share", [0.9, 0.5, 0.2, 0.05, 0.02])
def test_a_budget_is_kept(kind: str, share: float, request: pytest.FixtureRequest) -> None:
    config, contents = request.getfixturevalue(kind)
    seen = rates(config, 0.05)
    whole = planning.forecast(config, contents, seen)
    shorter, lines = planning.within(config, contents, seen, share * whole)
    assert planning.forecast(shorter, contents, seen) <= share * whole
    assert len(lines) == 1
    recipe = shorter.recipe
    assert 1 <= recipe.epochs < config.recipe.epochs
    assert 1 <= recipe.epochs_round <= config.recipe.epochs_round
    assert f"epochs={recipe.epochs} instead of {config.recipe.epochs}" in lines[0]
    assert f"epochs_round={recipe.epochs_round} instead of {config.recipe.epochs_round}" in lines[0]
    given_up = len(recipe.fractions) < len(config.recipe.fractions)
    assert given_up == (f"3 rounds instead of {len(config.recipe.fractions)}" in lines[0])
    assert replace(shorter, recipe=replace(recipe, **{key: getattr(config.recipe, key) for key in planning.SHORTENED})
                   ) == config  # nothing else changed  # fmt: skip


def test_a_budget_is_used(images: tuple[Config, FolderContents]) -> None:
    config, contents = images
    seen = rates(config, 0.05)
    whole = planning.forecast(config, contents, seen)
    assert planning.forecast(planning.within(config, contents, seen, whole / 2)[0], contents, seen) > 0.35 * whole


def test_time_to_spare_lengthens_nothing(images: tuple[Config, FolderContents]) -> None:
    config, contents = images
    seen = rates(config, 0.05)
    for factor in (1.2, 100.0):
        same, lines = planning.within(config, contents, seen, factor * planning.forecast(config, contents, seen))
        assert same == config
        assert "the whole schedule fits" in lines[0]


def test_what_no_schedule_fits_is_told(images: tuple[Config, FolderContents]) -> None:
    config, contents = images
    shortest, lines = planning.within(config, contents, rates(config, 10.0), 1.0)
    assert (shortest.recipe.epochs, shortest.recipe.epochs_round) == (1, 1)
    assert "even the shortest schedule takes longer" in lines[-1]


# --- rehearsal ---


@pytest.mark.parametrize("kind", ["images", "pixels"])
@pytest.mark.parametrize("unlabeled", [True, False])
def test_a_rehearsal_measures(kind: str, unlabeled: bool, request: pytest.FixtureRequest) -> None:
    config, contents = request.getfixturevalue(kind)
    if unlabeled:
        assert kinds(config) > {"Supervised"}
    else:
        contents = replace(contents, unlabeled=())
    config = replace(config, net="fcn-4" if contents.pixels else "resnet8-4")
    seen = planning.rehearse(config, contents, Execution(CPU), patience=0.01)
    assert seen.steps.keys() == (kinds(config) if unlabeled else {"Supervised"})
    assert min(seen.reading, seen.forward, *seen.steps.values()) > 0
    assert planning.forecast(config, contents, seen) > 0
    assert "on this CPU" in planning.line(planning.forecast(config, contents, seen), CPU)


def test_a_rehearsal_reads_some_photos_only(
    images: tuple[Config, FolderContents], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, contents = images
    monkeypatch.setattr(planning, "SOME", 4)
    for photo in [photo for part in (contents.validation, contents.test) for photo in part]:
        photo.path.unlink()  # not asked for
    assert len(planning._spread(contents.unlabeled)) == 4
    planning.rehearse(replace(config, net="resnet8-4"), contents, Execution(CPU), patience=0.01)
