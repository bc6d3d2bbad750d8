"""Whatever can change a result changes the identity of the stages it can change, and no others."""

import dataclasses
from pathlib import Path

import pytest

from dmt import config as configuration
from dmt import presets
from dmt.data.images.datasets import DATASETS
from dmt.data.images.options import DataOptions
from dmt.errors import ConfigError
from dmt.methods import catalogue
from dmt.objectives.itself import FixMatch
from dmt.runs.identity import identify
from dmt.tasks import classification

BASE = presets.get("digits").config
IMAGES = DATASETS["digits"].read(Path("nowhere"), print)

OTHER: dict[str, object] = {
    "labels": 50, "validation": 100, "augment": "none", "net": "resnet8-8", "batch": 32, "batch_pseudo": 16,
    "batch_labeled": 16, "epochs": 5, "epochs_round": 3, "rate": 0.3, "rate_round": 0.3, "rate_ramp": "poly",
    "momentum": 0.8, "weight_decay": 1e-3, "mixup": None, "gamma": 5.0, "gamma2": 2.0, "gamma_ramp": False,
    "fractions": (0.3, 0.4, 0.6, 0.8, 1.0), "per_class": True, "ema": 0.9, "labeler": "ema",
    "double_statistics": True, "pseudo_noise": 0.1, "shape": "pair", "epochs_oracle": 2, "mixup_round": None,
    "augment_weak": "crop-flip", "augment_strong": "shift", "strong_pseudo": True, "stop_rounds": 1,
    "optimizer": "adamw", "decay": "kernels", "encoder": 0.5, "head_first": 0.5, "encoder_round": 0.0,
    "weight_view": "weak", "weight_every": 4, "batchnorm": "reestimate", "label_noise": 0.2, "soft_labels": True,
    "pretrain": "rotation", "epochs_pretrain": 3, "start_round": "teacher",
    "online_stage": "fixmatch", "epochs_online_stage": 3, "teachers": 2,
}  # fmt: skip
ELSEWHERE = {"epochs_oracle", "epochs_pretrain", "epochs_online_stage", "augment_weak", "augment_strong", "stop_rounds"}
"""Options that change none of DMT's stages."""

OWN: dict[str, object] = {
    "epochs": 3, "labeled": 16, "unlabeled": 16, "rate": 0.3, "rate_ramp": "poly", "optimizer": "adam",
    "weight_decay": 1e-3, "decay": "kernels", "encoder": 0.5, "ema": 0.9, "threshold": 0.7, "temperature": 0.6,
    "weight": 3.0, "ramp": 0.3, "memory": 0.5, "own": 0.5, "agree": 5.0, "differ": 1.0, "step": 0.1, "noise": 0.3,
    "start": 0.5, "renormalized": True, "neighbors": 7, "reach": 0.5, "weight_fairness": 0.1, "memory_ema": 0.5,
    "mixup": 0.5, "strong_views": 2, "weight_strong": 0.1, "weight_rotation": 0.1, "decoders": 3, "judge_rate": 1e-3,
    "judge_width": 8, "semi": 0.3, "adversarial": 0.1, "adversarial_unlabeled": 0.1, "matching": 0.3,
    "consistency": 3.0, "correction": 0.3, "perturbations": ("noise",), "background": 1, "present": 0.4, "hard": 0.2,
}  # fmt: skip
"""The same of options that belong to single methods, by their name within the group."""

GROUPED = [key for key in configuration.flat(BASE) if "." in key]

ROUNDS_ONLY = {
    "batch_pseudo", "batch_labeled", "epochs_round", "rate_round", "gamma", "gamma2", "gamma_ramp", "fractions",
    "per_class", "labeler", "double_statistics", "pseudo_noise", "shape", "mixup_round", "strong_pseudo",
    "weight_view", "weight_every", "encoder_round", "soft_labels", "start_round", "online_stage",
}  # fmt: skip


RANDOM = {"A": "random", "B": "random"}


def identities(
    settings: dict[str, object], method: str = "dmt", seed: int = 1, starts: dict[str, str] = RANDOM
) -> dict[str, str]:
    config = configuration.override(BASE, settings)
    assert isinstance(config.data, DataOptions)
    opened = classification.split_up(config.data, IMAGES, seed)
    works = identify(catalogue.plan(method, config.recipe), config, opened, seed, starts)
    return {work.stage.name: work.identity for work in works}


PLAIN = identities({})


def test_every_option_is_tried_here() -> None:
    known = {*OTHER, "dataset", "share", "net_b", "output_stride", "labeling_views", "class_weights", *GROUPED}
    assert known == set(configuration.flat(BASE))


@pytest.mark.parametrize("key", [key for key in OTHER if key not in {*ELSEWHERE, "teachers"}])
def test_an_option_changes_the_stages_it_can_change(key: str) -> None:
    changed = identities({key: OTHER[key]})
    assert changed["A1"] != PLAIN["A1"]
    assert (changed["A0"] == PLAIN["A0"]) == (key in ROUNDS_ONLY)


def test_a_parent_changes_its_children() -> None:
    later = identities({"fractions": (0.2, 0.5, 0.6, 0.8, 1.0)})
    assert [later[name] == PLAIN[name] for name in ("A0", "A1", "A2", "A3")] == [True, True, False, False]


def test_several_teachers_change_the_rounds_that_have_them() -> None:
    changed = identities({"teachers": 2})
    assert [changed[name] == PLAIN[name] for name in ("A0", "A1", "A2", "A3", "A4")] == [True, True, True, False, False]


def test_oracle_and_seed() -> None:
    assert identities({"epochs_oracle": 2}, "oracle") != identities({}, "oracle")
    assert identities({"epochs_oracle": 2}) == PLAIN
    assert identities({}, seed=2)["A0"] != PLAIN["A0"]
    assert identities({"shape": "pair", "share": 0.8})["A0"] != PLAIN["A0"]


@pytest.mark.parametrize("key", GROUPED)
def test_an_option_of_one_method_changes_its_online_stage_alone(key: str) -> None:
    group, name = key.split(".")
    settings = {key: OWN[name]}
    (owner,) = catalogue.owners(group)
    changed, plain = identities(settings, owner.name), identities({}, owner.name)
    for stage in catalogue.plan(owner.name, BASE.recipe).stages:
        assert (changed[stage.name] != plain[stage.name]) == (stage.round > 0)
    assert identities(settings) == PLAIN


@pytest.mark.parametrize(
    ("method", "read"),
    [("dmt", set()), ("pseudo-label", {"augment_weak"}), ("fixmatch", {"augment_weak", "augment_strong"})],
)
def test_how_views_are_made_counts_for_stages_that_see_them(method: str, read: set[str]) -> None:
    for key in ("augment_weak", "augment_strong"):
        assert (identities({key: OTHER[key]}, method) != identities({}, method)) == (key in read)
    asked: dict[str, object] = {"weight_view": "weak"}
    assert identities(asked | {"augment_weak": "crop-flip"}) != identities(asked)
    assert identities(asked | {"augment_strong": "shift"}) == identities(asked)


def test_the_second_net_changes_its_own_line_and_what_it_teaches() -> None:
    pair = identities({"shape": "pair"})
    other = identities({"shape": "pair", "net_b": "resnet8-8"})
    assert [pair[name] == other[name] for name in ("A0", "B0", "A1", "B1")] == [True, False, False, False]


def test_the_output_stride_belongs_to_nets_that_dilate() -> None:
    assert identities({"output_stride": 16}) == PLAIN
    config = configuration.override(BASE, {"net": "deeplab2:resnet18", "output_stride": 16})
    assert config.net_of("A") == "deeplab2:resnet18@16"
    assert configuration.override(config, {"net": "deeplab2:resnet18@8"}).net_of("A") == "deeplab2:resnet18@8"
    with pytest.raises(ConfigError, match="output_stride must be 8 or 16, not 32"):
        configuration.override(BASE, {"output_stride": 32})


def test_a_start_changes_the_line_that_starts_from_it() -> None:
    pair = identities({"shape": "pair"})
    other = identities({"shape": "pair"}, starts={"A": "random", "B": "0123"})
    assert [pair[name] == other[name] for name in ("A0", "B0", "A1", "B1")] == [True, False, False, False]


def test_views_for_labeling_change_the_rounds_once_they_are_asked_for() -> None:
    mirrored: dict[str, object] = {"augment": "sane"}
    plain = identities(mirrored | {"labeling_views": ()})
    assert plain == identities(mirrored)
    changed = identities(mirrored | {"labeling_views": "flip"})
    assert [plain[name] == changed[name] for name in ("A0", "A1", "A2")] == [True, False, False]
    assert changed == identities(mirrored | {"labeling_views": "flip,flip"})


def test_what_uniform_does_not_read_does_not_split_it() -> None:
    unread = {"gamma": 5.0, "gamma_ramp": False, "weight_view": "weak", "weight_every": 4}
    assert identities(unread, "cl") == identities({}, "cl")


def test_a_revised_loss_changes_the_stages_that_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = identities({}, "fixmatch")
    monkeypatch.setattr(FixMatch, "revision", 1)
    assert identities({}, "fixmatch") != before
    assert identities({}) == PLAIN


def test_the_normalization_of_the_net_counts() -> None:
    assert isinstance(BASE.data, DataOptions)
    task, audit = classification.split_up(BASE.data, IMAGES, 1)
    other = dataclasses.replace(task, normalization=dataclasses.replace(task.normalization, mean=(0.5,)))
    plan = catalogue.plan("baseline", BASE.recipe)
    assert identify(plan, BASE, (other, audit), 1, RANDOM)[0].identity != PLAIN["A0"]
