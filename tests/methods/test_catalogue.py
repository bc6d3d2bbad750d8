from dataclasses import replace

import pytest

from dmt import presets
from dmt.core import ramps
from dmt.errors import ConfigError
from dmt.methods import catalogue, published_images
from dmt.methods.recipe import Recipe
from dmt.objectives.guessing import ReMixMatch
from dmt.objectives.stored import Stored
from dmt.objectives.truth import Supervised

RECIPE = Recipe(gamma=3.0, gamma2=2.0)


def test_published_steps_of_cifar10() -> None:
    """The paper's step counts, without data or training."""
    expected = {
        "cifar10-4k": (8480, [15750, 30750, 46500, 61500, 77250], 231_750),
        "cifar10-1k": (4240, [15000, 30000, 45000, 59250, 74250], 223_500),
    }
    for name, (baseline, rounds, total) in expected.items():
        config = presets.get(name).config
        for method in ("dmt", "cl"):
            steps = [stage.steps(config.data.sizes) for stage in catalogue.plan(method, config.recipe).stages]
            assert steps == [baseline, *rounds]
            assert sum(steps[1:]) == total
        (oracle,) = catalogue.plan("oracle", config.recipe).stages
        assert oracle.steps(config.data.sizes) == 29_400


def test_baseline_and_oracle_are_one_stage() -> None:
    baseline, oracle = catalogue.plan("baseline", RECIPE), catalogue.plan("oracle", RECIPE)
    assert [len(plan.stages) for plan in (baseline, oracle)] == [1, 1]
    assert baseline.stages[0].truth == "labeled"
    assert oracle.stages[0].truth == "everything"
    assert isinstance(baseline.stages[0].objective, Supervised)


@pytest.mark.parametrize(
    ("method", "weighting", "restart"),
    [("cl", "uniform", True), ("dmt", "dynamic", True), ("dst", "dynamic", False), ("dmt-naive", "naive", True),
     ("dmt-flip", "flip", True)],
)  # fmt: skip
def test_chains(method: str, weighting: str, restart: bool) -> None:
    plan = catalogue.plan(method, RECIPE)
    assert [stage.name for stage in plan.stages] == ["A0", "A1", "A2", "A3", "A4", "A5"]
    assert plan.results == ("A5",)
    for number, stage in enumerate(plan.stages[1:], start=1):
        before = plan.stages[number - 1].name
        assert stage.labels is not None
        assert stage.labels.by == before
        assert stage.labels.fraction == pytest.approx(0.2 * number)
        assert stage.start == (None if restart else before)
        assert isinstance(stage.objective, Stored)
        assert stage.objective.weighting == weighting
        if weighting != "uniform":
            assert (stage.objective.gamma, stage.objective.gamma2, stage.objective.ramp) == (3.0, 2.0, True)


def test_methods_that_begin_with_a_baseline_share_it() -> None:
    """So a comparison trains it once. Other online methods begin with fresh nets."""
    plans = {method.name: method.plan(RECIPE) for method in catalogue.METHODS.values() if not method.ceiling}
    assert len({plan.stages[0] for plan in plans.values() if plan.stages[0].round == 0}) == 1
    for name, plan in plans.items():
        assert plan.stages[0].round == 0 or len(plan.stages) == 1, name
        assert plan.stages[0].round == 0 or catalogue.get(name).family != "stored labels"


def test_uniform_does_not_depend_on_gamma() -> None:
    assert catalogue.plan("cl", Recipe(gamma=3.0)) == catalogue.plan("cl", Recipe(gamma=6.0, gamma_ramp=False))


def test_pair_learns_from_the_peer_of_the_round_before() -> None:
    plan = catalogue.plan("dmt", Recipe(shape="pair", share=0.8))
    assert plan.results == ("A5", "B5")
    assert (plan["A0"].share, plan["B0"].share) != (None, None)
    for number in range(1, 6):
        for mine, peer in (("A", "B"), ("B", "A")):
            stage = plan[f"{mine}{number}"]
            assert stage.labels is not None
            assert stage.start == f"{mine}{number - 1}"
            assert stage.labels.by == f"{peer}{number - 1}"
            assert stage.share is None  # the shares are for the first stage only


def test_unknown_method_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'dmt-flip'"):
        catalogue.plan("dmt-flp", RECIPE)


@pytest.mark.parametrize(
    "bad",
    [{"batch": 0}, {"rate": -1.0}, {"gamma": -0.1}, {"fractions": ()}, {"fractions": (0.5, 1.2)}, {"momentum": 1.0},
     {"mixup": 0.0}, {"share": 0.4}, {"rate_ramp": "sine"}, {"encoder": 0.0}],
)  # fmt: skip
def test_recipe_refuses_what_nothing_could_mean(bad: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(bad))):
        Recipe(**bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["baseline", "cl", "dmt", "oracle", "online"])
def test_labels_and_stored_labels_have_one_optimizer(method: str) -> None:
    recipe = replace(RECIPE, optimizer="adamw", decay="kernels", encoder=0.1)
    for stage in catalogue.plan(method, recipe).stages:
        descent = stage.schedule.descent
        assert (descent.optimizer, descent.decay, descent.encoder) == ("adamw", "kernels", 0.1)


def test_published_scores_are_of_methods_and_presets_that_exist() -> None:
    for data, scores in published_images.SCORES.items():
        preset = presets.get(data)
        assert preset.elsewhere == scores
        assert set(scores) <= set(catalogue.METHODS)
        assert not set(scores) & set(preset.paper)
        assert all(0 < score < 100 for score in scores.values())


def test_remixmatch_with_40_labels_has_one_strong_view_and_a_slower_ramp() -> None:
    for data, views, ramp in (("cifar10-40", 1, 1 / 8), ("cifar10-250", 8, 1 / 64), ("cifar10-4k", 8, 1 / 64)):
        (stage,) = catalogue.plan("remixmatch", presets.get(data).config.recipe).stages
        assert len(stage.objective.views) == 1 + views
        assert isinstance(stage.objective, ReMixMatch)
        assert stage.objective.ramp == ramp


@pytest.mark.parametrize("method", ["mt-seg", "gct", "augseg", "fixmatch-seg", "unimatch"])
def test_what_decodes_learns_ten_times_as_fast_on_voc(method: str) -> None:
    (stage,) = catalogue.plan(method, presets.get("voc-1of8").config.recipe).stages
    assert stage.schedule.descent.rate == 1e-2
    assert stage.schedule.descent.rate * stage.schedule.descent.encoder == pytest.approx(1e-3)


def test_the_rate_of_co_teaching_falls_after_80_of_200_passes() -> None:
    (stage,) = catalogue.plan("co-teaching", presets.get("cifar10-4k").config.recipe).stages
    assert stage.schedule.epochs == 200
    ramp = ramps.RATES[stage.schedule.rate_ramp]
    assert [ramp(passes / 200) for passes in (0, 80, 140, 200)] == pytest.approx([1.0, 1.0, 0.5, 0.0])


def test_published_recipes_of_cifar10_take_about_as_many_passes_as_dmt() -> None:
    config = presets.get("cifar10-4k").config

    def passes(method: str) -> float:
        stages = catalogue.plan(method, config.recipe).stages
        return sum(stage.steps(config.data.sizes) * stage.cost().passes for stage in stages)

    for method in ("fixmatch", "flexmatch", "freematch", "softmatch", "mixmatch", "remixmatch"):
        assert passes(method) / passes("dmt") == pytest.approx(1.0, abs=0.05), method
