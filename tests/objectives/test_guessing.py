"""Guess and mix: what is drawn, remembered and trained beside the net. Whole losses are in test_by_hand.py."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from dmt.core.execution import Execution
from dmt.core.schedule import Descent, Schedule
from dmt.data.images.augment import views as policies
from dmt.data.images.batches import ImageBatches, Unlabeled
from dmt.data.sets import LabeledSet
from dmt.models.build import NetSpec, build
from dmt.objectives.base import Cast, Loss, Objective, Progress
from dmt.objectives.guessing import RECENT, MixMatch, ReMixMatch
from dmt.training import beside, loop
from dmt.training.checkpoint import MEMORY, Checkpoint
from dmt.training.journal import Journal
from dmt.training.trainer import Student, Trainer, Training
from dmt.types import Batch, BatchPlan, BatchShape, Normalization, Sizes
from tests.objectives import by_hand
from tests.training.test_trainer import flat

CPU = torch.device("cpu")
PLAIN = Execution(CPU)
SHAPE = BatchShape(labeled=3, unlabeled=4, height=6, width=6)
SPEC = NetSpec("resnet8-2", 3, (3, 6, 6), Normalization((0.5,) * 3, (0.25,) * 3))
BOTH: tuple[Objective, ...] = (MixMatch(), ReMixMatch(strong_views=2))
each_objective = pytest.mark.parametrize("objective", BOTH, ids=lambda each: type(each).__name__)


def batch(objective: Objective, rows: bool = False) -> Batch:
    drawn = torch.Generator().manual_seed(3)
    shape = (5,) if rows else (3, 6, 6)
    views = {name: torch.rand(4, *shape, generator=drawn) for name in objective.views}
    return Batch(torch.rand(3, *shape, generator=drawn), torch.tensor([0, 2, 1]), views)


def loss(objective: Objective, net: nn.Module, given: Batch, step: int = 50) -> tuple[Loss, dict[str, nn.Module]]:
    torch.manual_seed(0)
    parts = {name: part.module for name, part in objective.parts(8, 3).items()}
    cast = Cast((Student(net, PLAIN),), parts=parts, memory=objective.memory(Sizes(3, 4, 7), 3))
    return objective.loss(cast, given, objective.draw(Progress(step, 100, 1), SHAPE, CPU)), parts


@each_objective
def test_every_image_is_mixed_by_a_share_of_its_own(objective: Objective) -> None:
    """TorchSSL and USB draw one for the whole batch."""
    mix = objective.draw(Progress(7, 100, 1), SHAPE, CPU).mix
    count = 3 + len(objective.views) * 4
    assert len(set(mix.coefficients.tolist())) == count
    assert sorted(mix.partners.tolist()) == list(range(count))
    assert float(mix.coefficients.min()) >= 0.5
    again, other = (objective.draw(Progress(step, 100, 1), SHAPE, CPU).mix for step in (7, 8))
    assert torch.equal(again.coefficients, mix.coefficients)
    assert not torch.equal(other.coefficients, mix.coefficients)
    assert dataclasses.replace(objective, mixup=None).draw(Progress(7, 100, 1), SHAPE, CPU).mix is None  # type: ignore[type-var]


@each_objective
def test_the_ramp_takes_a_64th_of_the_training(objective: Objective) -> None:
    """A popular port ramps over all of it."""
    at = [float(objective.draw(Progress(step, 6400, 1), SHAPE, CPU).ramp) for step in (0, 50, 100, 6000)]
    assert at == pytest.approx([0.0, 0.5, 1.0, 1.0])


class Watched(Student):
    """Remembers what it was shown, and in which way."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__(net, PLAIN)
        self.shown: list[tuple[int, bool, bool]] = []

    def __call__(self, images: Tensor, *, update_statistics: bool = True) -> Tensor:
        self.shown.append((len(images), torch.is_grad_enabled(), update_statistics))
        return super().__call__(images, update_statistics=update_statistics)

    def embed(self, images: Tensor, *, update_statistics: bool = True) -> Tensor:
        self.shown.append((len(images), torch.is_grad_enabled(), update_statistics))
        return super().embed(images, update_statistics=update_statistics)


@pytest.mark.parametrize(
    ("objective", "shown"),
    [
        (BOTH[0], [(8, False, False), (3 + 8, True, True)]),
        (BOTH[1], [(4, False, False), (3 + 12, True, True), (4, True, False), (4, True, False)]),
    ],
)
def test_statistics_come_from_one_forward_over_labeled_and_unlabeled_images(
    objective: Objective, shown: list[tuple[int, bool, bool]]
) -> None:
    """Guesses leave no trace; statistics of labeled and of unlabeled batches by themselves would ruin it."""
    net = Watched(build(SPEC, seed=1).train())
    parts = {name: part.module for name, part in objective.parts(8, 3).items()}
    cast = Cast((net,), parts=parts, memory=objective.memory(Sizes(3, 4, 7), 3))
    objective.loss(cast, batch(objective), objective.draw(Progress(5, 100, 1), SHAPE, CPU))
    assert net.shown == shown


def test_mixmatch_divides_by_the_classes() -> None:
    case = by_hand.CASES["MixMatch"][1]
    said = case.given()[0][0]
    guess = by_hand.sharpened((by_hand.p(said["weak"]) + by_hand.p(said["weak2"])) / 2)
    squares = sum(((by_hand.p(said[view]) - guess) ** 2).sum() for view in ("weak", "weak2"))
    assert float(by_hand.step(case).loss.logged["unlabeled"]) == pytest.approx(squares / (4 * 3), rel=1e-5)


def test_remixmatch_uses_its_memory_before_it_moves_it() -> None:
    case = by_hand.CASES["ReMixMatch"][0]
    found = by_hand.step(case).loss.memory
    before, said = case.memory, by_hand.p(case.given()[0][0]["weak"])
    torch.testing.assert_close(found["given"][:-1], before["given"][1:])
    torch.testing.assert_close(found["given"][-1], torch.tensor(said.mean(0), dtype=torch.float32))
    true = torch.tensor([0.5, 0.0, 0.5])  # one image of class 2, one of class 0
    torch.testing.assert_close(found["truth"], 0.999 * before["truth"] + 0.001 * true)
    fresh = ReMixMatch().memory(Sizes(3, 4, 7), 4)
    assert fresh["given"].shape == (RECENT, 4)
    assert all(bool((value == 0.25).all()) for value in fresh.values())


def test_remixmatch_aligns_what_it_gives_with_what_is_true() -> None:
    """The net says class 0 of everything; labels have all classes: later guesses must have less of class 0."""

    class Fond(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return torch.tensor([1.0, 0.0, 0.0]) + 0 * images.flatten(1)[:, :1]

    objective = ReMixMatch(strong_views=1, weight_rotation=0.0)
    memory, sure = dict(objective.memory(Sizes(3, 4, 7), 3)), []
    for step in range(RECENT + 1):
        cast = Cast((Student(Fond(), PLAIN),), memory=memory)
        found = objective.loss(cast, batch(objective), objective.draw(Progress(step, 200, 1), SHAPE, CPU))
        sure.append(float(found.logged["confidence"]))
        memory = dict(found.memory)
    assert sure[0] == pytest.approx(float(torch.tensor([2.0, 0.0, 0.0]).softmax(0)[0]), rel=1e-3)
    assert sure == sorted(sure, reverse=True)
    assert sure[-1] == pytest.approx(1 / 3, abs=0.01)  # given as often as it is true, all classes are alike


def test_rotation_teaches_the_net_and_its_own_layer() -> None:
    moved = []
    for weight in (0.0, 0.5):
        objective = ReMixMatch(strong_views=1, weight=0.0, weight_strong=0.0, weight_rotation=weight, mixup=None)
        net = build(SPEC, seed=1).train()
        found, parts = loss(objective, net, batch(objective))
        found.total.backward()  # type: ignore[no-untyped-call]
        moved.append(torch.cat([each.grad.flatten() for each in net.body.stem.parameters()]))  # type: ignore[union-attr]
        rest = found.total.detach() - weight * found.logged.get("rotation", torch.tensor(0.0))
        torch.testing.assert_close(rest, found.logged["labeled"])
    assert float((moved[1] - moved[0]).norm()) > 1e-3 * float(moved[0].norm())
    assert all(each.grad is not None and bool(each.grad.any()) for each in parts["rotation"].parameters())


def test_features_of_images_cannot_be_turned() -> None:
    objective = ReMixMatch(strong_views=2)
    net = nn.Sequential(nn.Linear(5, 3), nn.Tanh())
    found, _ = loss(objective, net, batch(objective, rows=True))
    assert "rotation" not in found.logged
    assert bool(torch.isfinite(found.total))


def test_terms_without_weight_cost_nothing() -> None:
    assert ReMixMatch().cost(SHAPE) == (3 + (9 + 2) * 4, 4)
    assert ReMixMatch(strong_views=1, weight_strong=0.0).cost(SHAPE) == (3 + (2 + 1) * 4, 4)
    bare = ReMixMatch(strong_views=1, weight_strong=0.0, weight_rotation=0.0)
    assert bare.cost(SHAPE) == (3 + 2 * 4, 4)
    assert (bare.embeds, dict(bare.parts(8, 3))) == (False, {})
    assert bare.draw(Progress(1, 100, 1), SHAPE, CPU).quarters is None
    assert ReMixMatch(strong_views=3).views == ("weak", "strong", "strong2", "strong3")


# ---- in the trainer --------------------------------------------------------------------------------------------------

STEPS = 6


def trainer(objective: Objective) -> Trainer:
    drawn = torch.Generator().manual_seed(1)
    images = torch.randint(0, 256, (15, 3, 6, 6), dtype=torch.uint8, generator=drawn)
    labeled = LabeledSet(tuple(map(str, range(4))), images[:4], torch.arange(4) % 3)
    plan = BatchPlan(3, 4, objective.views, objective.labeled_view, seed=1)
    batches = ImageBatches(labeled, plan, policies("shift"), PLAIN, Unlabeled(images[4:]))
    schedule = Schedule(epochs=1, descent=Descent(2e-3, "adamw"), rate_ramp="constant", labeled=3, unlabeled=4)
    net = build(SPEC, seed=1)
    parts = beside.parts(objective, net, SPEC, seed=1)
    memory = objective.memory(Sizes(4, 11, 15), 3)
    return Trainer({"A": net}, Training(objective, schedule, STEPS, 1, parts, memory), batches, PLAIN)


def fit(objective: Objective, folder: Path, stop: Callable[[int], bool]) -> Trainer:
    training = trainer(objective)
    pace = loop.Pace(1e9, lambda: stop(training.step), lambda _: None)
    loop.fit(training, Checkpoint(folder), Journal(folder / "journal.jsonl"), pace)
    return training


def test_resumed_equals_unbroken_with_memory_and_part(tmp_path: Path) -> None:
    whole = fit(BOTH[1], tmp_path / "whole", lambda step: False)
    fit(BOTH[1], tmp_path / "parts", lambda step: step == 3)
    state = Checkpoint(tmp_path / "parts").state()
    assert state is not None
    assert {MEMORY, "part-rotation.safetensors"} <= set(state["digests"])
    parts = fit(BOTH[1], tmp_path / "parts", lambda step: False)
    for mine, theirs in zip(parts.modules(), whole.modules(), strict=True):
        assert torch.equal(flat(mine), flat(theirs))
    assert all(torch.equal(parts.memory[name], value) for name, value in whole.memory.items())
    fresh = beside.parts(BOTH[1], build(SPEC, seed=1), SPEC, seed=1)["rotation"].module
    assert not torch.equal(flat(whole.parts["rotation"]), flat(fresh))
    assert whole.parts["rotation"].weight.shape == (4, 8)
