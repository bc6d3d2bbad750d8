import json
from pathlib import Path

import numpy as np
import pytest

from dmt import config, presets
from dmt.data.pixels import published
from dmt.data.pixels.segment_options import SegmentOptions
from dmt.errors import ConfigError
from dmt.methods import catalogue

BASE = presets.get("digits").config


def test_flat_keys_reach_their_group() -> None:
    changed = config.override(BASE, {"gamma": "5", "labels": "50", "net": "wrn-10-1", "mixup": "none",
                                     "fractions": "0.5, 1", "gamma_ramp": "false", "shape": "pair"})  # fmt: skip
    assert (changed.recipe.gamma, changed.data.labels, changed.net) == (5.0, 50, "wrn-10-1")
    assert (changed.recipe.mixup, changed.recipe.fractions) == (None, (0.5, 1.0))
    assert changed.recipe.gamma_ramp is False
    assert changed.recipe.shape == "pair"
    assert BASE.recipe.gamma == 4.0


def test_stored_views_go_with_frozen_nets() -> None:
    photos = config.override(presets.get("photos").config, {"stored_views": 1, "augment": "crop-flip"})
    assert config.override(photos, {"net": "frozen:resnet18"}).stores_features("A")
    assert not config.override(photos, {"net": "timm:resnet18"}).stores_features("A")
    with pytest.raises(ConfigError, match="stored_views must be 2 or more for labeling_views=flip"):
        config.override(photos, {"labeling_views": "flip"})


def test_what_flat_gives_override_takes() -> None:
    for preset in presets.PRESETS.values():
        assert config.override(preset.config, config.flat(preset.config)) == preset.config
        assert set(config.helps(preset.config)) == set(config.flat(preset.config))


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        (("gama", "5"), "unknown option 'gama'; did you mean 'gamma'?"),
        (("method", "dmt"), "unknown option 'method'; dmt list options lists all"),
        (("cbst.renormed", True), "unknown option 'cbst.renormed'; did you mean 'cbst.renormalized'?"),
        (("cbst.x", True), "unknown option 'cbst.x'; choose from: cbst.renormalized"),
        (("net_c", "x"), "did you mean 'net_b'?"),
        (("gamma", "five"), "gamma must be a number, not 'five'"),
        (("gamma", "nan"), "gamma must be a number, not 'nan'"),
        (("gamma", float("inf")), "gamma must be a number, not 'inf'"),
        (("epochs", "1.5"), "epochs must be a whole number, not '1.5'"),
        (("epochs", True), "epochs must be a whole number, not 'True'"),
        (("gamma_ramp", "maybe"), "gamma_ramp must be true or false, not 'maybe'"),
        (("labeler", "both"), "labeler must be one of raw, ema, mean, not 'both'"),
        (("fractions", "a,b"), "fractions must be a number, not 'a'"),
        (("fractions", 3), "fractions must be a list of numbers, such as [0.5, 1], not 3"),
        (
            ("labeling_views", "flop"),
            "labeling_views must be flip, dropout and, for pixels, scales such as 0.75,1.25, not 'flop'",
        ),
        (("labeling_views", 3), "labeling_views must be a list of names, not 3"),
        (("labeling_views", "0.75"), "scales are for pixels"),
        (
            ("labeling_views", "flip"),
            "augment to one of crop-flip, reflect-flip, photo, paper, sane, sane-2, fixmatch, reflect-fixmatch",
        ),
        (("epochs_round", "1,2,x"), "epochs_round must be a whole number, not 'x'"),
        (("epochs_round", "none"), "epochs_round must be a whole number, not 'none'"),
        (("mixup_round", "off"), "mixup_round must be a number, none or same, not 'off'"),
        (("start_round", "teachr"), "start_round must be one of fresh, teacher, not 'teachr'"),
        (("augment", "shft"), "unknown augmentation 'shft'; did you mean 'shift'?"),
        (("labels", "105"), "labels must be a multiple of the 10 classes"),
        (("labels", "0"), "labels must be a multiple of the 10 classes, 10 or more"),
        (("labels", "1200"), "must leave some"),
        (("net", 0.5), "net must be text, not '0.5'"),
        (("dataset", "mnist"), "name another preset"),
    ],
)
def test_mistakes_are_one_line_naming_what_is_right(pair: tuple[str, object], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.override(BASE, dict([pair]))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_values_of_numpy_are_values() -> None:
    given = {
        "gamma": np.float32(3), "teachers": np.int64(2), "fractions": np.array([0.5, 1]), "gamma_ramp": np.bool_(False),
        "epochs_round": [np.int64(1), 2], "net": np.str_("mlp-8"), "online": {"epochs": np.array(7)},
    }  # fmt: skip
    recipe = config.override(BASE, given).recipe
    assert (recipe.gamma, recipe.teachers, recipe.fractions, recipe.gamma_ramp) == (3.0, 2, (0.5, 1.0), False)
    assert recipe.epochs_round == (1, 2)
    assert json.loads(json.dumps(config.given(given)))["online.epochs"] == 7
    with pytest.raises(ConfigError, match=r"epochs must be a whole number, not '1\.5'"):
        config.override(BASE, {"epochs": np.float64(1.5)})


@pytest.mark.parametrize("settings", [[("gamma", 1)], "gamma=1", {3: 4}])
def test_what_are_no_settings_is_refused_in_one_line(settings: object) -> None:
    with pytest.raises(ConfigError, match="option") as caught:
        config.given(settings)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("labeler", ["ema", "mean"])
def test_a_slow_copy_that_is_not_kept_cannot_label(labeler: str) -> None:
    with pytest.raises(ConfigError, match=f"labeler must be raw when ema is none, not {labeler}"):
        config.override(BASE, {"labeler": labeler, "ema": "none"})


def test_nets_label_in_views_that_training_shows_them() -> None:
    assert config.override(BASE, {"labeling_views": "flip", "augment": "sane"}).recipe.labeling_views == ("flip",)
    scenes = presets.get("scenes").config  # resized from 0.75 to 1.25, never mirrored
    changed = config.override(scenes, {"labeling_views": "0.75, flip 1.25", "flip": "true"})
    assert changed.recipe.labeling_views == ("0.75", "flip", "1.25")
    with pytest.raises(ConfigError, match="set flip=true too"):
        config.override(scenes, {"labeling_views": "flip"})
    with pytest.raises(ConfigError, match=r"labeling_views=1\.5 is no scale .*, 0\.75 to 1\.25; set scale wider"):
        config.override(scenes, {"labeling_views": ["1.5"]})


def test_toml(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('gamma = 5\nfractions = [0.5, 1]\nnet = "wrn-10-1"\n')
    changed = config.override(BASE, config.from_toml(path))
    assert (changed.recipe.gamma, changed.recipe.fractions) == (5.0, (0.5, 1.0))
    path.write_text("gamma = ")
    with pytest.raises(ConfigError, match="not valid TOML"):
        config.from_toml(path)
    with pytest.raises(ConfigError, match="cannot read"):
        config.from_toml(tmp_path / "no.toml")


@pytest.mark.parametrize(
    ("text", "toml", "value"),
    [
        ("epochs_round=1,2,4,4,4", "epochs_round = [1, 2, 4, 4, 4]", (1, 2, 4, 4, 4)),
        ("epochs_round=3", "epochs_round = 3", 3),
        ("gamma=1 2 3 4 5", "gamma = [1, 2, 3.0, 4, 5]", (1.0, 2.0, 3.0, 4.0, 5.0)),
        ("gamma2=none", 'gamma2 = "none"', None),
        ("mixup_round=none", 'mixup_round = "none"', None),
        ("mixup_round=same", 'mixup_round = "same"', "same"),
        ("mixup_round=0.5,0.5,none,none,0.1", 'mixup_round = [0.5, 0.5, "none", "none", 0.1]',
         (0.5, 0.5, None, None, 0.1)),
        ("start_round=teacher", 'start_round = "teacher"', "teacher"),
        ("start_round=fresh,fresh,fresh,fresh,teacher", 'start_round = ["fresh", "fresh", "fresh", "fresh", "teacher"]',
         ("fresh", "fresh", "fresh", "fresh", "teacher")),
    ],
)  # fmt: skip
def test_options_of_rounds_are_typed_as_a_value_or_a_list(text: str, toml: str, value: object, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(toml)
    key = text.split("=")[0]
    for given in (config.from_pairs([text]), config.from_toml(path), {key: value}):
        changed = config.override(BASE, given)
        assert config.flat(changed)[key] == value
        assert config.override(BASE, {key: config.shown(value)}) == changed  # as `dmt list options` shows it
        assert config.override(BASE, json.loads(json.dumps(config.flat(changed)))) == changed  # as a run records it


@pytest.mark.parametrize("value", [0.1234567, 1 / 3, 1 / 64, 3e-5, 1e-9, 123456789.5])
def test_a_number_is_shown_so_that_typing_it_gives_it_back(value: float) -> None:
    assert config.override(BASE, {"gamma": config.shown(value)}).recipe.gamma == value


def test_pairs() -> None:
    assert config.from_pairs(["a=1", " b = x=y "]) == {"a": "1", "b": "x=y"}
    with pytest.raises(ConfigError, match="key=value"):
        config.from_pairs(["gamma"])


def test_the_papers_rows() -> None:
    """Tab. 1: γ 4, lr 0.1, 750 epochs, 512 images, 7:1 and 31:1."""
    for name, pseudo, labeled, epochs in (("cifar10-4k", 448, 64, 1060), ("cifar10-1k", 496, 16, 2120)):
        recipe = presets.get(name).config.recipe
        assert (recipe.gamma, recipe.gamma2, recipe.rate_round, recipe.epochs_round) == (4.0, None, 0.1, 750)
        assert (recipe.batch_pseudo, recipe.batch_labeled, recipe.epochs) == (pseudo, labeled, epochs)
        assert (recipe.rate, recipe.epochs_oracle, recipe.batch, recipe.mixup) == (0.2, 300, 512, 0.75)
        assert presets.get(name).origin == "paper"
    assert presets.get("cifar10-250").origin == presets.get("cifar10-40").origin == "ours"
    assert "ours" in presets.get("cifar10-40").summary


def test_the_fast_preset_is_ours_and_fits_into_ten_minutes() -> None:
    """At the rates measured on one H200, FixMatch 100 steps a second, and with 90 seconds for reading and compiling."""
    fast, paper = presets.get("cifar10-4k-fast"), presets.get("cifar10-4k")
    assert (fast.origin, fast.paper) == ("ours", {})
    assert "ours" in fast.summary
    views = {"augment": "paper", "augment_weak": "reflect-flip", "augment_strong": "reflect-fixmatch"}
    assert config.override(fast.config, views).data == paper.config.data
    stages = catalogue.plan("dmt", fast.config.recipe).stages
    steps = [stage.steps(fast.config.data.sizes) for stage in stages]
    assert steps == [8480, 11948, 11948, 28840]
    assert steps[1] / 100 + (steps[0] + steps[2] + steps[3]) / 140 < 10 * 60 - 90
    assert [stage.cost().looked for stage in stages] == [0, 0, 128, 128]
    assert [stage.labels.fraction for stage in stages if stage.labels] == [1.0, 1.0]
    assert [stage.schedule.descent.rate for stage in stages] == [0.2, 0.03, 0.2, 0.2]


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("cifar10-4k-best", [8480, 11948, 11948, 28840, 49440]),
        ("cifar10-1k-best", [4240, 20056, 15048, 29997]),
    ],
)
def test_the_best_presets_are_ours_and_end_with_all_labels_twice(name: str, steps: list[int]) -> None:
    preset = presets.get(name)
    assert preset.origin == "ours"
    stages = catalogue.plan("dmt", preset.config.recipe).stages
    assert [stage.steps(preset.config.data.sizes) for stage in stages] == steps
    assert [stage.labels.fraction for stage in stages[-2:] if stage.labels] == [1.0, 1.0]
    row = presets.get(name.removesuffix("-best"))
    assert preset.published("dmt") == f"{row.paper['dmt']:.2f}*"  # another schedule
    assert preset.published("mixmatch") == row.published("mixmatch")


def test_an_older_run_has_no_option_that_its_preset_was_given_since() -> None:
    preset = presets.get("cifar10-4k-fast").config
    assert preset.recipe.online_stage == "fixmatch"
    older = {key: value for key, value in config.flat(preset).items() if "online_stage" not in key}
    found = config.recorded(preset, older)
    assert (found["online_stage"], found["epochs_online_stage"]) == ("none", 100)
    assert found["start_round"] == "teacher"  # written down


@pytest.mark.parametrize(("labels", "expected"), [(1000, 2121), (4000, 1060)])
def test_the_rule_for_baseline_epochs(labels: int, expected: int) -> None:
    assert presets.baseline_epochs(labels, 50_000, 300) == expected


@pytest.mark.parametrize(
    ("ratio", "labels", "epochs"),
    [("1of8", 1322, 48), ("1of20", 530, 90), ("1of50", 211, 200), ("1of106", 100, 400), ("sbd", 1464, 48)],
)
def test_presets_of_voc_say_how_long_the_published_list_is(ratio: str, labels: int, epochs: int) -> None:
    for name in (f"voc-{ratio}", f"voc-small-{ratio}"):
        preset = presets.get(name)
        data = preset.config.data
        assert isinstance(data, SegmentOptions)
        assert data.published is not None
        for split in published.SPLITS:
            assert len(published.labeled_ids(*data.published, split)[0]) == labels
        assert f" {labels:,} labels " in preset.summary
    assert presets.get(f"voc-small-{ratio}").config.recipe.epochs == epochs
    assert presets.get(f"voc-small-{ratio}").origin == "ours"


@pytest.mark.parametrize(("name", "labels"), [("cityscapes-1of8", 371), ("cityscapes-1of30", 100)])
def test_presets_of_cityscapes_say_how_long_the_published_list_is(name: str, labels: int) -> None:
    ratio = name.removeprefix("cityscapes-1of")
    assert {len(published.labeled_ids("cityscapes", ratio, split)[0]) for split in published.SPLITS} == {labels}
    assert f" {labels} labels " in presets.get(name).summary
