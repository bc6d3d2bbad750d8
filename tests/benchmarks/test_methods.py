"""Methods at equal cost: the settings of a data set, and records that are added to."""

from pathlib import Path

import pytest

from benchmarks import methods
from dmt import config as configuration
from dmt import files, presets
from dmt.methods import catalogue


@pytest.mark.parametrize("data", list(methods.SETTINGS))
def test_online_methods_take_about_as_many_passes_as_dmt(data: str) -> None:
    config = configuration.override(presets.get(data).config, methods.settings_for(data))
    config = configuration.override(config, methods.fitted(config))
    goal = methods.passes(catalogue.get("dmt"), config)
    for method, options in methods.online(config):
        found = methods.passes(method, config)
        epoch = found / config.recipe.groups[options].epochs  # lengths are whole epochs
        assert found == pytest.approx(goal, abs=max(goal / 4, epoch / 2)), method.name


def test_decoders_on_frozen_encoders_all_learn_by_adamw() -> None:
    config = configuration.override(presets.get("voc-small-1of20").config, methods.settings_for("voc-small-1of20"))
    for method in methods.serving(config):
        for stage in method.plan(config.recipe).stages:
            descent = stage.schedule.descent
            assert descent.optimizer == "adamw", method.name
            continued = stage.start is not None or stage.labels is not None
            assert descent.rate == (1.5e-3 if continued else 3e-3), method.name


def test_rows_are_added_to_a_record_of_the_same_settings(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    assert methods.known_rows(record, {"labels": 40}) == {}
    files.write_json(record, {"settings": {"fractions": [0.5, 1]}, "rows": {"DMT": {"passes": 1}}})
    assert methods.known_rows(record, {"fractions": (0.5, 1)}) == {"DMT": {"passes": 1}}
    with pytest.raises(SystemExit, match="is of other settings"):
        methods.known_rows(record, {"fractions": (0.5, 0.9)})


def test_small_nets_on_cifar_learn_in_small_batches_at_the_rate_of_the_baseline() -> None:
    settings = methods.settings_for("cifar10-4k")
    config = configuration.override(presets.get("cifar10-4k").config, settings)
    for name in ("fixmatch", "cps"):
        (stage,) = catalogue.get(name).plan(config.recipe).stages
        assert (stage.schedule.labeled, stage.schedule.unlabeled) == (16, 112)
        assert stage.schedule.descent.rate == config.recipe.rate
    (stage,) = catalogue.get("mean-teacher").plan(config.recipe).stages
    assert stage.schedule.descent.optimizer == "adamw"
    assert stage.schedule.descent.rate == 0.002
