"""Starts by unlabeled images: what is learned by hand, and a plan whose fresh nets all begin there."""

import dataclasses
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import dmt
from dmt import config as configuration
from dmt import presets
from dmt.core import turning
from dmt.core.execution import Execution
from dmt.errors import ConfigError
from dmt.methods import catalogue
from dmt.objectives.base import Cast, Progress
from dmt.objectives.self_supervised import Rotation, SelfSupervised, SimSiam
from dmt.results import reading
from dmt.runs import stopping
from dmt.runs.folder import Folder
from dmt.runs.progress import Silent
from dmt.training.trainer import Student
from dmt.types import Batch, BatchShape
from tests.conftest import TINY
from tests.fitting.test_run import nets
from tests.methods.test_all_methods import StopEach

CPU = torch.device("cpu")
CONFIG = presets.get("digits").config


class Small(nn.Module):
    """A net that tells its features."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.body, self.head = nn.Sequential(nn.Flatten(), nn.Linear(48, 6)), nn.Linear(6, 3)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.embed(images))  # type: ignore[no-any-return]

    def embed(self, images: Tensor) -> Tensor:
        return self.body(images)  # type: ignore[no-any-return]


def scene(objective: SelfSupervised, generator: torch.Generator) -> tuple[Small, Cast, Batch]:
    net = Small()
    torch.manual_seed(3)
    parts = {name: part.module for name, part in objective.parts(6, 3).items()}
    views = {view: torch.rand(8, 3, 4, 4, generator=generator) for view in objective.views}
    batch = Batch(torch.rand(1, 3, 4, 4, generator=generator), torch.tensor([0]), views)
    return net, Cast((Student(net, Execution(CPU)),), parts=parts), batch


def test_rotation_tells_by_how_many_quarters_an_image_was_turned(generator: torch.Generator) -> None:
    objective = Rotation()
    net, cast, batch = scene(objective, generator)
    quarters = objective.draw(Progress(3, 9, 1), BatchShape(1, 8, 4, 4), CPU)
    assert set(quarters.tolist()) <= {0, 1, 2, 3}
    loss = objective.loss(cast, batch, quarters)
    turned = torch.stack([view.rot90(int(k), (1, 2)) for view, k in zip(batch.views["weak"], quarters, strict=True)])
    torch.testing.assert_close(loss.total, F.cross_entropy(cast.parts["rotation"](net.embed(turned)), quarters))
    loss.total.backward()  # type: ignore[no-untyped-call]
    assert net.body[1].weight.grad is not None
    assert net.head.weight.grad is None


def test_images_that_are_no_squares_turn_in_their_middle() -> None:
    images = torch.arange(8.0).view(1, 1, 2, 4)
    turned = turning.turned(images, torch.tensor([2]))
    assert turned.flatten().tolist() == [0, 6, 5, 3, 4, 2, 1, 7]


def test_simsiam_compares_each_view_with_the_other_that_stands_still(generator: torch.Generator) -> None:
    objective = SimSiam(width=16)
    net, cast, batch = scene(objective, generator)
    loss = objective.loss(cast, batch, None)
    found = [cast.parts["project"](net.embed(batch.views[view])) for view in objective.views]
    guesses = [cast.parts["predict"](each) for each in found]
    cosines = [F.cosine_similarity(guesses[at], found[1 - at].detach()).mean() for at in (0, 1)]
    torch.testing.assert_close(loss.total, -(cosines[0] + cosines[1]) / 2)
    mine = torch.autograd.grad(loss.total, net.body[1].weight, retain_graph=True)[0]  # type: ignore[arg-type]
    theirs = torch.autograd.grad(-(cosines[0] + cosines[1]) / 2, net.body[1].weight)[0]  # type: ignore[arg-type]
    torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("objective", [Rotation(), SimSiam()], ids=lambda each: type(each).__name__)
def test_labels_play_no_part(objective: SelfSupervised, generator: torch.Generator) -> None:
    _, cast, batch = scene(objective, generator)
    drawn = objective.draw(Progress(0, 9, 1), BatchShape(1, 8, 4, 4), CPU)
    other = dataclasses.replace(batch, images=1 - batch.images, truth=batch.truth + 1)
    assert torch.equal(objective.loss(cast, batch, drawn).total, objective.loss(cast, other, drawn).total)


def test_all_fresh_nets_of_a_line_begin_there() -> None:
    recipe = configuration.override(CONFIG, {"pretrain": "simsiam", "fractions": "0.5,1"}).recipe
    plan = catalogue.plan("dmt", recipe)
    assert [(stage.name, stage.start) for stage in plan.stages] == [
        ("A-start", None), ("A0", "A-start"), ("A1", "A-start"), ("A2", "A-start"),
    ]  # fmt: skip
    assert plan["A-start"].before
    assert plan.stages[:2] == catalogue.plan("baseline", recipe).stages
    pair = catalogue.plan("dmt", dataclasses.replace(recipe, shape="pair"))
    assert [stage.name for stage in pair.stages[:4]] == ["A-start", "B-start", "A0", "B0"]
    assert (pair["A1"].start, pair["B1"].start) == ("A0", "B0")


def test_where_it_cannot_be_is_said_in_one_line() -> None:
    recipe = configuration.override(CONFIG, {"pretrain": "rotation"}).recipe
    with pytest.raises(ConfigError, match="two nets in one stage"):
        catalogue.plan("cps", recipe)
    with pytest.raises(ConfigError, match="where pixels get labels"):
        configuration.override(presets.get("scenes").config, {"pretrain": "rotation"})
    with pytest.raises(ConfigError, match="encoder stays as it is"):
        configuration.override(CONFIG, {"pretrain": "rotation", "net": "frozen:resnet18"})


def test_no_result_shows_it_but_what_it_cost(tmp_path: Path) -> None:
    settings = TINY | {"pretrain": "rotation", "epochs_pretrain": 1, "epochs": 2, "fractions": "1"}
    report = dmt.fit("digits", method="dmt", settings=settings, out=tmp_path / "run")
    assert "start" not in str(report)
    for job in reading.read(Folder(tmp_path / "run")):
        assert [stage.name for stage in job.before] == ["A-start"]
        assert job.before[0].outcome is not None
        assert job.before[0].outcome["cost"]["learned"] > 0
        assert all(not stage.name.endswith("start") for stage in job.stages)
    assert len(list((tmp_path / "run" / "stages").glob("A-start-*"))) == 1  # one for the Baseline and DMT


def test_stopped_within_it_a_run_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    """Its parts are saved with it: a head that began anew would teach the net something else."""
    settings = TINY | {"pretrain": "simsiam", "epochs_pretrain": 1, "epochs": 2}

    def fit(name: str, watcher: Silent) -> None:
        dmt.fit("digits", method="baseline", settings=settings, out=tmp_path / name, watcher=watcher)

    fit("unbroken", Silent())
    watcher = StopEach()
    for _ in range(2):
        with pytest.raises(stopping.Stopped):
            fit("resumed", watcher)
    fit("resumed", watcher)
    assert any("A-start" in title for title in watcher.stopped)
    assert nets(tmp_path / "resumed") == nets(tmp_path / "unbroken")
