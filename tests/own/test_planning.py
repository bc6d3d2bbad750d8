"""Forecasts that count every stage once, and schedules that fit a budget."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from dmt.config import Config, flat, override
from dmt.data.folders.contents import FolderContents
from dmt.errors import ConfigError
from dmt.methods import catalogue
from dmt.own import choosing, planning, rehearsal, view_counts
from dmt.own.rehearsal import Kind, Rates
from tests.data.folders import photo_layout

CPU = torch.device("cpu")
USUAL = ["dmt", "baseline"]


@pytest.fixture
def images(tmp_path: Path) -> tuple[Config, FolderContents]:
    setup = choosing.choose(photo_layout.write_classes(tmp_path, labeled=5, unlabeled=60, test=2), CPU)
    return setup.preset.config, setup.contents


@pytest.fixture
def pixels(tmp_path: Path) -> tuple[Config, FolderContents]:
    setup = choosing.choose(photo_layout.write_masks(tmp_path, labeled=10, unlabeled=6), CPU)
    return setup.preset.config, setup.contents


def test_views_that_a_method_tells_apart_are_stored(images: tuple[Config, FolderContents]) -> None:
    config = override(images[0], {"net": "frozen:resnet18", "net_b": "frozen:resnet18"})
    needs = {"baseline": 1, "dmt": 1, "fixmatch": 3, "mean-teacher": 2}
    assert {method: view_counts.fewest(config, method) for method in needs} == needs
    assert view_counts.fewest(override(config, {"strong_pseudo": True}), "dmt") == 3
    for method, need in needs.items():
        view_counts.require(override(config, {"stored_views": need}), ["baseline", method])
        view_counts.require(override(config, {"stored_views": 0}), [method])  # made anew in every step
        if need > 1:
            with pytest.raises(ConfigError, match=f"stored_views={need - 1} .* add --set stored_views={need}"):
                view_counts.require(override(config, {"stored_views": need - 1}), ["baseline", method])


def kinds(config: Config, methods: Sequence[str] = USUAL) -> set[Kind]:
    return {rehearsal.kind(stage) for stage in rehearsal.stages(config, methods)}


def rates(config: Config, seconds: float, methods: Sequence[str] = USUAL) -> Rates:
    return Rates(reading=0.001, steps=dict.fromkeys(kinds(config, methods), seconds), forward=0.0001)


# --- forecast ---


@pytest.mark.parametrize("kind", ["images", "pixels"])
def test_every_stage_counts_once(kind: str, request: pytest.FixtureRequest) -> None:
    config, contents = request.getfixturevalue(kind)
    whole = sum(stage.steps(config.data.sizes) for stage in catalogue.plan("dmt", config.recipe).stages)
    only = Rates(0.0, dict.fromkeys(kinds(config), 1.0), 0.0)
    assert planning.forecast(config, contents, only, USUAL) == whole  # the Baseline is the first stage of DMT
    assert planning.forecast(config, contents, only, ["dmt"]) == whole
    baseline = sum(stage.steps(config.data.sizes) for stage in catalogue.plan("baseline", config.recipe).stages)
    assert planning.forecast(config, contents, only, ["baseline"]) == baseline < whole
    assert planning.usual(contents) == USUAL
    assert planning.usual(replace(contents, unlabeled=())) == ["baseline"]


def test_methods_with_stages_of_the_same_name_count_each(images: tuple[Config, FolderContents]) -> None:
    """A1 of DST starts from A0, A1 of DMT afresh; both learn from the same labels by the same objective."""
    config, contents = images
    config = override(config, {"shape": "chain"})
    both = ["dst", "dmt"]
    only = Rates(0.0, dict.fromkeys(kinds(config, both), 1.0), 0.0)
    alone = [planning.forecast(config, contents, only, [method]) for method in (*both, "baseline")]
    assert planning.forecast(config, contents, only, both) == alone[0] + alone[1] - alone[2]


def test_reading_and_labeling_count(images: tuple[Config, FolderContents]) -> None:
    config, contents = images
    nothing = Rates(0.0, dict.fromkeys(kinds(config), 0.0), 0.0)
    every = sum(len(part) for _, part in contents.parts())
    assert planning.forecast(config, contents, replace(nothing, reading=1.0), USUAL) == every == 15 + 60 + 6
    stages = catalogue.plan("dmt", config.recipe).stages
    scored = 6  # test; all labels teach
    rounds = [stage for stage in stages if stage.labels is not None]  # each labels all, and weighs them when it is done
    expected = 2 * scored * len(stages) + 2 * 60 * len(rounds)  # raw and EMA; teacher and student
    assert planning.forecast(config, contents, replace(nothing, forward=1.0), USUAL) == expected


def test_labels_from_several_passes_count_as_many(images: tuple[Config, FolderContents]) -> None:
    config, contents = images
    several = override(config, {"labeler": "mean", "labeling_views": "flip", "augment": "sane"})
    only = Rates(0.0, dict.fromkeys(kinds(config), 0.0), 1.0)
    rounds = [stage for stage in catalogue.plan("dmt", config.recipe).stages if stage.labels is not None]
    more = planning.forecast(several, contents, only, USUAL) - planning.forecast(config, contents, only, USUAL)
    assert more == 3 * 60 * len(rounds)


# --- budget ---


@pytest.mark.parametrize("kind", ["images", "pixels"])
@pytest.mark.parametrize("share", [0.9, 0.5, 0.2, 0.05, 0.02])
def test_a_budget_is_kept(kind: str, share: float, request: pytest.FixtureRequest) -> None:
    config, contents = request.getfixturevalue(kind)
    seen = rates(config, 0.05)
    whole = planning.forecast(config, contents, seen, USUAL)
    shorter, lines = planning.within(config, contents, seen, share * whole, USUAL)
    assert planning.forecast(shorter, contents, seen, USUAL) <= share * whole
    assert len(lines) == 1
    recipe = shorter.recipe
    assert 1 <= recipe.epochs < config.recipe.epochs
    assert 1 <= recipe.rounds()[0].epochs <= config.recipe.rounds()[0].epochs
    assert f"epochs={recipe.epochs} instead of {config.recipe.epochs}" in lines[0]
    assert f"epochs_round={recipe.epochs_round} instead of {config.recipe.epochs_round}" in lines[0]
    given_up = len(recipe.fractions) < len(config.recipe.fractions)
    assert given_up == (f"3 rounds instead of {len(config.recipe.fractions)}" in lines[0])
    kept = {key: value for key, value in flat(config).items() if key in planning.SHORTENED}
    assert override(shorter, kept) == config  # nothing else changed


def test_a_budget_is_used(images: tuple[Config, FolderContents]) -> None:
    config, contents = images
    seen = rates(config, 0.05)
    whole = planning.forecast(config, contents, seen, USUAL)
    shorter, _ = planning.within(config, contents, seen, whole / 2, USUAL)
    assert planning.forecast(shorter, contents, seen, USUAL) > 0.35 * whole


def test_a_budget_shortens_every_round_of_a_list(images: tuple[Config, FolderContents]) -> None:
    config, contents = images
    config = override(config, {"fractions": (0.2, 0.4, 0.6, 0.8), "epochs_round": (10, 20, 40, 80)})
    seen = rates(config, 0.05)
    whole = planning.forecast(config, contents, seen, USUAL)
    for share in (0.5, 0.1):
        shorter, lines = planning.within(config, contents, seen, share * whole, USUAL)
        assert planning.forecast(shorter, contents, seen, USUAL) <= share * whole
        lengths = [each.epochs for each in shorter.recipe.rounds()]
        assert lengths == sorted(lengths)  # in the same proportion
        assert lengths[0] < lengths[-1] < 80
        assert f"epochs_round={','.join(map(str, lengths))} instead of 10,20,40,80" in lines[0]
        assert shorter.recipe.fractions == config.recipe.fractions  # the list says how many rounds there are


def test_time_to_spare_lengthens_nothing(images: tuple[Config, FolderContents]) -> None:
    config, contents = images
    seen = rates(config, 0.05)
    for factor in (1.2, 100.0):
        same, lines = planning.within(
            config, contents, seen, factor * planning.forecast(config, contents, seen, USUAL), USUAL
        )
        assert same == config
        assert "the whole schedule fits" in lines[0]


def test_what_no_schedule_fits_is_told(images: tuple[Config, FolderContents]) -> None:
    config, contents = images
    shortest, lines = planning.within(config, contents, rates(config, 10.0), 1.0, USUAL)
    assert (shortest.recipe.epochs, shortest.recipe.epochs_round) == (1, 1)
    assert "even the shortest schedule takes longer" in lines[-1]


@pytest.mark.parametrize("methods", [["online"], ["baseline"], ["fixmatch", "baseline"], ["cps"], ["online", "dmt"]])
@pytest.mark.parametrize("share", [0.5, 0.05])
def test_a_budget_is_for_the_methods_that_are_trained(
    methods: list[str], share: float, images: tuple[Config, FolderContents]
) -> None:
    config, contents = images
    seen = rates(config, 0.05, methods)
    whole = planning.forecast(config, contents, seen, methods)
    shorter, (line,) = planning.within(config, contents, seen, share * whole, methods)
    assert 0.35 * share * whole < planning.forecast(shorter, contents, seen, methods) <= share * whole
    changed = {key for key, value in flat(shorter).items() if value != flat(config)[key]}
    read = planning.lengths(config, methods).keys()
    rounds = {"fractions"} if "dmt" in methods else set()
    assert read <= changed <= read | rounds  # what no method reads is left alone, and not mentioned
    assert {key for key in planning.LENGTHS if f" {key}=" in line} == read
    assert ("online.epochs" in read) == ("online" in methods)
    assert ("epochs_round" in read) == ("dmt" in methods)
