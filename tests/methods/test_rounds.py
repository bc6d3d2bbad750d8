"""Options of rounds: one value for all, or a list with one for each."""

from dataclasses import replace

import pytest

from dmt import config, presets
from dmt.errors import ConfigError
from dmt.methods import catalogue
from dmt.methods.plan import Stage
from dmt.methods.recipe import BY_ROUND, Recipe
from dmt.objectives.stored import Stored
from dmt.objectives.truth import Supervised

OFFLINE = ("cl", "cbst", "dst", "dmt", "dmt-naive", "dmt-flip")
LISTS: dict[str, object] = {
    "fractions": (0.4, 0.8, 0.8), "epochs_round": (1, 2, 4), "rate_round": (0.3, 0.2, 0.1),
    "mixup_round": (0.5, None, None), "gamma": (1.0, 2.0, 3.0), "gamma2": (4.0, 5.0, 6.0),
}  # fmt: skip


def rounds(method: str, recipe: Recipe) -> list[Stage]:
    return [stage for stage in catalogue.plan(method, recipe).stages if stage.round]


@pytest.mark.parametrize("method", OFFLINE)
@pytest.mark.parametrize("data", ["digits", "scenes"])
def test_each_round_has_its_own(method: str, data: str) -> None:
    recipe = config.override(presets.get(data).config, LISTS).recipe
    found = rounds(method, recipe)
    assert {stage.round for stage in found} == {1, 2, 3}
    for stage in found:
        at = stage.round - 1
        assert stage.labels is not None
        assert stage.labels.fraction == (0.4, 0.8, 0.8)[at]
        assert (stage.schedule.epochs, stage.schedule.descent.rate) == ((1, 2, 4)[at], (0.3, 0.2, 0.1)[at])
        assert isinstance(stage.objective, Stored)
        assert stage.objective.mixup == (0.5, None, None)[at]
        weighed = ((1.0, 2.0, 3.0)[at], (4.0, 5.0, 6.0)[at])
        assert (stage.objective.gamma, stage.objective.gamma2) == (weighed if stage.objective.weighs else (1.0, None))


@pytest.mark.parametrize("method", OFFLINE)
def test_one_value_a_round_trains_as_one_for_all(method: str) -> None:
    recipe = replace(presets.get("digits").config.recipe, gamma2=2.0)
    listed = {key: (getattr(recipe, key),) * 5 for key in BY_ROUND if key != "mixup_round"}
    assert catalogue.plan(method, replace(recipe, **listed)) == catalogue.plan(method, recipe)  # type: ignore[arg-type]


@pytest.mark.parametrize(("given", "expected"), [("same", 0.75), (None, None), (0.5, 0.5)])
def test_mixup_in_rounds_is_that_of_the_baseline_unless_asked(given: object, expected: float | None) -> None:
    plan = catalogue.plan("dmt", Recipe(mixup_round=given))  # type: ignore[arg-type]
    assert [stage.objective.mixup for stage in plan.stages if isinstance(stage.objective, Supervised)] == [0.75]
    assert {stage.objective.mixup for stage in plan.stages if isinstance(stage.objective, Stored)} == {expected}


@pytest.mark.parametrize("method", ["cl", "dmt", "dmt-flip"])
def test_a_round_may_continue_its_teacher_instead_of_starting_fresh(method: str) -> None:
    recipe = Recipe(fractions=(0.5, 1.0, 1.0), start_round=("fresh", "teacher", "fresh"))
    assert [stage.start for stage in rounds(method, recipe)] == [None, "A1", None]
    assert [stage.start for stage in rounds("dst", recipe)] == ["A0", "A1", "A2"]  # always continues
    with pytest.raises(ConfigError, match="start_round must be fresh unless shape is chain"):
        replace(recipe, shape="pair")


def test_online_self_training_is_a_first_round() -> None:
    recipe = Recipe(rate_round=(0.3, 0.2), fractions=(0.5, 1.0))
    assert rounds("online", recipe)[0].schedule.descent.rate == 0.3


def test_fractions_may_repeat_and_end_below_one() -> None:
    repeated = Recipe(fractions=(0.2, 0.4, 0.6, 0.8, 0.8))
    for shape in ("chain", "pair"):
        found = rounds("dmt", replace(repeated, shape=shape))
        assert len({stage.name for stage in found}) == len(found)
        assert [stage.labels.fraction for stage in found if stage.labels and stage.lines == ("A",)][-2:] == [0.8, 0.8]


@pytest.mark.parametrize("key", BY_ROUND)
def test_a_list_of_the_wrong_length_is_refused_with_the_number_of_rounds(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.override(presets.get("digits").config, {key: "fresh,fresh,teacher" if key == "start_round" else "1,2,4"})
    said = f"{key} lists 3 values, but there are 5 rounds (fractions=0.2,0.4,0.6,0.8,1)"
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "values", "says"),
    [
        ("epochs_round", (1, 0), "epochs_round must be at least 1, not 0"),
        ("rate_round", (0.1, 0.0), "rate_round must be greater than 0, not 0.0"),
        ("gamma", (1.0, -1.0), "gamma must be at least 0, not -1.0"),
        ("mixup_round", (None, 0.0), "mixup_round must be greater than 0, or none, not 0.0"),
    ],
)
def test_every_value_of_a_list_is_checked(key: str, values: tuple[object, ...], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Recipe(fractions=(0.5, 1.0), **{key: values})  # type: ignore[arg-type]
