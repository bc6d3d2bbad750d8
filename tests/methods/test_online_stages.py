"""An online stage between a Baseline and the rounds that its labels teach."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

import dmt
from dmt import config as configuration
from dmt import presets
from dmt.errors import ConfigError
from dmt.methods import catalogue
from dmt.methods.online import FixMatchOptions
from dmt.methods.plan import Plan
from dmt.methods.recipe import OnlineStage, Recipe
from dmt.objectives.itself import FixMatch
from dmt.objectives.stored import Stored
from dmt.objectives.truth import Supervised
from dmt.results import guard_rules, reading
from dmt.runs.folder import Folder
from dmt.runs.progress import Silent
from tests.conftest import TINY

NAMES = tuple(name for name in get_args(OnlineStage) if name != "none")


def shape_of(plan: Plan) -> list[tuple[str, int, str | None, str | None]]:
    return [
        (stage.name, stage.round, stage.start, None if stage.labels is None else stage.labels.by)
        for stage in plan.stages
    ]


def test_it_continues_the_baseline_and_labels_for_the_first_round() -> None:
    recipe = Recipe(fractions=(0.5, 1.0), online_stage="fixmatch", epochs_online_stage=7, epochs_round=(3, 4))
    plan = catalogue.plan("dmt", recipe)
    assert shape_of(plan) == [
        ("A0", 0, None, None), ("A1", 1, "A0", None), ("A2", 2, None, "A1"), ("A3", 3, None, "A2"),
    ]  # fmt: skip
    assert plan.results == ("A3",)
    assert [type(stage.objective) for stage in plan.stages] == [Supervised, FixMatch, Stored, Stored]
    assert [stage.schedule.epochs for stage in plan.stages[1:]] == [7, 3, 4]


def test_rounds_may_continue_it() -> None:
    recipe = Recipe(fractions=(1.0, 1.0), online_stage="fixmatch", start_round=("teacher", "fresh"))
    assert [stage.start for stage in catalogue.plan("cl", recipe).stages] == [None, "A0", "A1", None]
    assert [stage.start for stage in catalogue.plan("dst", recipe).stages] == [None, "A0", "A1", "A2"]


def test_both_nets_of_a_pair_have_one() -> None:
    recipe = replace(presets.get("scenes").config.recipe, fractions=(1.0,), online_stage="classmix")
    assert shape_of(catalogue.plan("dmt", recipe)) == [
        ("A0", 0, None, None), ("B0", 0, None, None), ("A1", 1, "A0", None), ("B1", 1, "B0", None),
        ("A2", 2, "A1", "B1"), ("B2", 2, "B1", "A1"),
    ]  # fmt: skip


def test_other_methods_and_first_stages_are_as_without() -> None:
    plain = presets.get("digits").config.recipe
    changed = replace(plain, online_stage="fixmatch")
    for method in ("baseline", "oracle", "online", "fixmatch"):
        assert catalogue.plan(method, changed) == catalogue.plan(method, plain)
    assert catalogue.plan("dmt", changed)["A0"] == catalogue.plan("dmt", plain)["A0"]
    assert catalogue.plan("dmt", replace(plain, epochs_online_stage=3)) == catalogue.plan("dmt", plain)


def test_its_options_are_the_methods_own_but_for_the_length() -> None:
    settings = {"online_stage": "fixmatch", "epochs_online_stage": 5, "fixmatch.epochs": 9, "fixmatch.threshold": 0.8}
    recipe = configuration.override(presets.get("digits").config, settings).recipe
    stage, alone = catalogue.plan("dmt", recipe)["A1"], catalogue.plan("fixmatch", recipe)["A1"]
    assert isinstance(stage.objective, FixMatch)
    assert stage.objective.threshold == 0.8
    assert replace(stage, start=None, schedule=replace(stage.schedule, epochs=9)) == alone
    assert recipe.groups[FixMatchOptions].epochs == 9


@pytest.mark.parametrize("name", NAMES)
def test_every_one_of_them_can_be_asked_for(name: str) -> None:
    served = catalogue.get(name).serves
    for data, labeled in (("digits", "images"), ("scenes", "pixels")):
        config = presets.get(data).config
        if labeled not in served:
            with pytest.raises(ConfigError, match=f"online_stage must be none, or a method that labels {labeled}"):
                configuration.override(config, {"online_stage": name})
            continue
        settings = {"online_stage": name, "ema": 0.9}
        plan = catalogue.plan("dmt", configuration.override(config, settings).recipe)
        kinds = {type(stage.objective) for stage in catalogue.plan(name, config.recipe).stages}
        assert {type(stage.objective) for stage in plan.stages if stage.round == 1} == kinds


def test_a_rate_comes_with_its_optimizer() -> None:
    settings = {"online_stage": "fixmatch", "optimizer": "adamw", "rate": 0.002, "decay": "kernels"}
    config = presets.get("digits").config
    for name, own, expected in (
        ("dmt", {}, ("adamw", 0.002, "kernels")),
        ("fixmatch", {}, ("adamw", 0.002, "kernels")),
        ("dmt", {"fixmatch.rate": 0.03}, ("sgd", 0.03, "all")),
        ("dmt", {"fixmatch.optimizer": "nesterov"}, ("nesterov", 0.002, "all")),
        ("dmt", {"optimizer": "nesterov"}, ("sgd", 0.002, "all")),
    ):
        descent = catalogue.plan(name, configuration.override(config, settings | own).recipe)["A1"].schedule.descent
        assert (descent.optimizer, descent.rate, descent.decay) == expected


@pytest.mark.parametrize("value", ["cps", "fixmtch"])
def test_what_is_none_of_them_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="online_stage must be one of none, fixmatch"):
        configuration.override(presets.get("digits").config, {"online_stage": value})


def test_a_run_is_reported_with_it_and_resumes(tmp_path: Path) -> None:
    settings = TINY | {"epochs": 2, "fractions": "1,1", "online_stage": "fixmatch", "epochs_online_stage": 1}
    settings |= {"rate_round": "0.1,0.2"}
    report = dmt.fit("digits", out=tmp_path, settings=settings, watcher=Silent())
    (job,) = [job for job in reading.read(Folder(tmp_path)) if job.method == "dmt"]
    assert [stage.name for stage in job.stages] == ["A0", "A1", "A2", "A3"]
    assert [stage.labels is not None for stage in job.stages] == [False, False, True, True]
    assert all(stage.score("test", "raw") is not None for stage in job.stages)
    first, online, *rounds = job.stages
    assert guard_rules.option(job, first, "rate") == "rate"
    assert guard_rules.option(job, online, "rate") == "fixmatch.rate"
    assert guard_rules.option(job, online, "epochs") == "epochs_online_stage"
    assert {guard_rules.option(job, stage, "rate") for stage in rounds} == {"rate_round"}
    assert guard_rules._slower(job, rounds[0]) == "a lower rate_round in round 1"
    by_validation = reading._by_validation(replace(job, patience=1), 1)
    assert set(by_validation.results) < {"A2", "A3"}  # the online stage is no round that could be the best
    assert not job.kept_before_rounds
    assert replace(job, results=("A1",)).kept_before_rounds
    written = sorted(tmp_path.glob("stages/*/journal.jsonl"))
    before = [path.stat().st_mtime_ns for path in written]
    assert dmt.fit("digits", out=tmp_path, settings=settings, watcher=Silent()).jobs == report.jobs
    assert [path.stat().st_mtime_ns for path in written] == before
