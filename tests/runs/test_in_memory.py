"""A plan without a folder."""

from dataclasses import replace

import pytest
import torch

from dmt.core.execution import Execution
from dmt.data.images import augment
from dmt.data.sets import LabeledSet, UnlabeledSet
from dmt.errors import ConfigError
from dmt.methods import catalogue
from dmt.methods.recipe import Recipe
from dmt.runs import starting
from dmt.runs.in_memory import InMemory
from dmt.runs.starting import Starts
from dmt.tasks.features import FeatureTask
from dmt.types import Normalization

NET = "mlp-4"
RECIPE = Recipe(
    batch=8, batch_pseudo=4, batch_labeled=4, epochs=20, epochs_round=2, rate=0.05, rate_round=0.05, mixup=None,
    ema=None, fractions=(0.5, 1.0), shape="pair",
)  # fmt: skip


def trains() -> InMemory:
    chance = torch.Generator().manual_seed(0)
    labels = torch.arange(20) % 2
    rows = torch.randn(20, 1, 3, generator=chance) + 4.0 * labels[:, None, None]
    labeled = LabeledSet(tuple(map(str, range(8))), rows[:8], labels[:8])
    unlabeled = UnlabeledSet(tuple(map(str, range(8, 20))), rows[8:])
    none = labeled.take(torch.arange(0))
    task = FeatureTask(
        ("a", "b"), (3, 1, 1), Normalization((0.0,), (1.0,)), augment.views("none"), labeled, unlabeled, none, none,
        offsets={NET: 0},
    )  # fmt: skip
    return InMemory(task, Starts(starting.RANDOM, {}), Execution(torch.device("cpu")), lambda line: NET)


def test_each_learns_from_what_the_other_said_a_round_before() -> None:
    trainer = trains()
    plan = catalogue.plan("dmt", RECIPE)
    found = {each.stage.name: each for each in trainer.train(plan.stages, trainer.task.labeled, lambda stage: 1)}
    assert list(found) == ["A0", "B0", "A1", "B1", "A2", "B2"]
    assert [found[name].pseudo is None for name in ("A0", "B0", "A1", "B1")] == [True, True, False, False]
    pseudo = found["A2"].pseudo
    assert pseudo is not None
    assert int(pseudo.selected.sum()) == 12
    net = found["B1"].nets["B"].eval()
    with torch.no_grad():
        assert torch.equal(pseudo.labels, net(trainer.task.unlabeled.images[:, 0]).argmax(1))


def test_finished_nets_stay_as_they_were() -> None:
    trainer = trains()
    plan = catalogue.plan("dmt", RECIPE)
    before = None
    for each in trainer.train(plan.stages, trainer.task.labeled, lambda stage: 1):
        if each.stage.name == "A0":
            net = each.nets["A"]
            before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    assert before is not None
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())


def test_a_round_without_any_label_is_refused() -> None:
    trainer = trains()
    (first, second, third, *_) = catalogue.plan("dmt", replace(RECIPE, per_class=True, fractions=(0.05,))).stages
    with pytest.raises(ConfigError, match="keeps no pseudo label"):
        list(trainer.train([first, second, third], trainer.task.labeled, lambda stage: 1))
