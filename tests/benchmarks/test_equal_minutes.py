"""Methods at equal minutes: lengths follow from rates, and a record is added to."""

import json
from pathlib import Path

import pytest

from benchmarks import equal_minutes
from dmt import config, presets
from dmt.methods import catalogue


@pytest.mark.parametrize("preset", ["cifar10-4k", "cifar10-40"])
@pytest.mark.parametrize("method", equal_minutes.FIRST)
def test_every_method_is_as_long_as_its_rate_allows(preset: str, method: str) -> None:
    settings = equal_minutes.settings_of(preset, method, 5.0, equal_minutes.RATES)
    planned = config.override(presets.get(preset).config, settings)
    stages = catalogue.plan(method, planned.recipe).stages
    sizes = planned.data.sizes
    seconds = [stage.steps(sizes) / equal_minutes._rate(stage, method, equal_minutes.RATES) for stage in stages]
    overhead = equal_minutes.START + equal_minutes.COMPILE * (len(stages) - 1)
    assert sum(seconds) + overhead == pytest.approx(300, rel=0.02)


def test_rounds_are_those_of_the_fast_preset() -> None:
    settings = equal_minutes.settings_of("cifar10-4k", "dmt", 5.0, equal_minutes.RATES)
    planned = config.override(presets.get("cifar10-4k").config, settings)
    fast = presets.get("cifar10-4k-fast").config
    alone = {"online_stage": "none", "epochs_online_stage": 100, "start_round": "fresh"}
    assert config.override(planned, {"epochs": 1060, "epochs_round": (116, 280)}) == config.override(fast, alone)
    assert "strong_pseudo" not in equal_minutes.settings_of("cifar10-4k", "fixmatch", 5.0, equal_minutes.RATES)


def test_a_method_of_unknown_speed_is_asked_for() -> None:
    with pytest.raises(SystemExit, match="--rate uda=NUMBER"):
        equal_minutes.settings_of("cifar10-4k", "uda", 5.0, {"baseline": 1.0})


@pytest.mark.slow
def test_a_record_is_added_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["digits", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path), "--minutes", "0.01"]
    equal_minutes.main([*words, "--methods", "baseline"])
    equal_minutes.main([*words, "--methods", "baseline,fixmatch"])
    assert capsys.readouterr().out.count("baseline: ") == 1
    equal_minutes.main([*words, "--methods", "cps", "--budget", "0.1s"])
    assert "cps: no time left" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        equal_minutes.main([*words, "--seed", "2"])
    assert "is of 0.01 minutes and seed 1; give another --out" in capsys.readouterr().err
    (tmp_path / "runs" / "digits-uda").mkdir()
    with pytest.raises(SystemExit):
        equal_minutes.main([*words, "--methods", "uda"])
    assert "digits-uda was interrupted" in capsys.readouterr().err
    found = json.loads((tmp_path / "equal_minutes_digits.json").read_text())
    assert list(found["rows"]) == ["baseline", "fixmatch"]
    assert found["rows"]["baseline"]["changes"] == ["epochs=1"]
    assert found["rows"]["fixmatch"]["learned"] > found["rows"]["baseline"]["learned"] > 0
    written = (tmp_path / "equal_minutes_digits.md").read_text()
    assert "| FixMatch | " in written
    assert str(tmp_path) not in written
