"""A slow copy teaches: the traps that others fell into. Whole losses are in test_by_hand.py."""

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dmt.core.ema import SlowCopy
from dmt.core.execution import Execution
from dmt.core.pasting import Paste
from dmt.objectives.base import Cast, Loss, Objective, Progress
from dmt.objectives.slow import CutMixSeg, MeanTeacher, MeanTeacherSeg
from dmt.training.trainer import SlowTeacher, Student
from dmt.types import Batch, BatchShape
from tests.objectives import by_hand

CPU = torch.device("cpu")
PLAIN = Execution(CPU)
SHAPE = BatchShape(2, 4, 5, 5)


@pytest.fixture
def net() -> nn.Module:
    """As in eval mode also while it trains: no dropout, no BatchNorm."""
    torch.manual_seed(2)
    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.Tanh(), nn.Flatten(), nn.Linear(54, 3))


@pytest.fixture
def batch(generator: torch.Generator) -> Batch:
    views = {name: torch.rand(4, 3, 5, 5, generator=generator) for name in ("weak", "weak2")}
    return Batch(torch.rand(2, 3, 5, 5, generator=generator), torch.tensor([0, 2]), views)


def loss(net: nn.Module, batch: Batch, slow: SlowCopy | None = None) -> Loss:
    objective = MeanTeacher(weight=50.0)
    cast = Cast((Student(net, PLAIN),), (SlowTeacher(slow or SlowCopy(net, 0.9), PLAIN),))
    return objective.loss(cast, batch, objective.draw(Progress(99, 100, 1), SHAPE, CPU))


def gradient(net: nn.Module, total: Tensor) -> Tensor:
    net.zero_grad()
    total.backward()  # type: ignore[no-untyped-call]
    return torch.cat([each.grad.flatten() for each in net.parameters() if each.grad is not None])


def test_two_views_teach_even_if_student_and_teacher_are_equal(net: nn.Module, batch: Batch) -> None:
    """USB's Mean Teacher read the teacher's output as the student's: a loss of 0 for ever."""
    found = loss(net, batch)
    assert float(found.logged["unlabeled"]) > 1e-4
    with_term = gradient(net, found.total)
    without = gradient(net, nn.functional.cross_entropy(net(batch.images), batch.truth))
    assert float((with_term - without).norm()) > 1e-3


def test_the_same_view_and_parameters_teach_nothing_at_all(net: nn.Module, batch: Batch) -> None:
    same = Batch(batch.images, batch.truth, {"weak": batch.views["weak"], "weak2": batch.views["weak"]})
    assert float(loss(net, same).logged["unlabeled"]) == 0.0


def test_the_same_view_teaches_if_parameters_differ(net: nn.Module, batch: Batch) -> None:
    same = Batch(batch.images, batch.truth, {"weak": batch.views["weak"], "weak2": batch.views["weak"]})
    slow = SlowCopy(net, 0.9)
    with torch.no_grad():
        next(net.parameters()).add_(0.1)
    assert float(loss(net, same, slow).logged["unlabeled"]) > 0


def test_the_teacher_is_as_it_was_and_asked_in_eval_mode(batch: Batch) -> None:
    torch.manual_seed(2)
    net = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.Dropout(0.5), nn.Flatten(), nn.Linear(54, 3))
    slow = SlowCopy(net, 0.9)
    before = copy.deepcopy(slow.net.state_dict())
    found = loss(net, batch, slow)
    gradient(net, found.total)
    assert all(torch.equal(value, before[name]) for name, value in slow.net.state_dict().items())
    assert all(each.grad is None and not each.requires_grad for each in slow.net.parameters())
    # statistics come from the labeled images alone: the unlabeled forward leaves no trace
    twin = copy.deepcopy(before["1.running_mean"])
    inputs = net[0](batch.images).mean((0, 2, 3)).detach()
    torch.testing.assert_close(net[1].running_mean, 0.9 * twin + 0.1 * inputs)


@pytest.mark.parametrize(
    ("objective", "step", "weight"),
    [(MeanTeacher(50.0, ramp=0.4), 0, 0.0), (MeanTeacher(50.0, ramp=0.4), 20, 25.0), (MeanTeacher(50.0), 80, 50.0),
     (MeanTeacherSeg(1.0, ramp=0.15), 0, np.exp(-5.0)), (MeanTeacherSeg(1.0, ramp=0.15), 15, 1.0)],
)  # fmt: skip
def test_ramps(objective: Objective, step: int, weight: float) -> None:
    assert float(objective.draw(Progress(step, 100, 1), SHAPE, CPU)) == pytest.approx(weight)


def term(case: by_hand.Case) -> float:
    return float(by_hand.step(case).loss.logged["unlabeled"])


def test_mt_seg_compares_logits() -> None:
    """The slow copy's are the net's moved by (.4, −.3, .1): (.16 + .09 + .01)/3 everywhere; probabilities would not."""
    (case,) = by_hand.CASES["MeanTeacherSeg"]
    nets, slow = case.given()
    apart = (slow[0]["weak"] - nets[0]["weak"])[:, :, :, 0]
    np.testing.assert_allclose(apart[:, :, 0], [[0.4, -0.3, 0.1]] * 2)
    squares = ((slow[0]["weak"] - nets[0]["weak"]) ** 2).mean(1)
    assert squares[0, 0, 0] == pytest.approx(0.26 / 3)
    assert term(case) == pytest.approx(squares[by_hand.VALID].mean(), rel=1e-5)


def test_squares_are_a_mean_over_classes_for_mean_teacher_and_a_sum_for_cutmix_seg() -> None:
    (images,), (pixels,) = by_hand.CASES["MeanTeacher"], by_hand.CASES["CutMixSeg"]
    nets, slow = images.given()
    squares = (by_hand.p(nets[0]["weak"]) - by_hand.p(slow[0]["weak2"])) ** 2
    assert term(images) == pytest.approx(squares.sum() / (2 * 3), rel=1e-5)
    nets, slow = pixels.given()
    ours, theirs = by_hand.p(by_hand.pasted(nets[0]["weak"])), by_hand.pasted(by_hand.p(slow[0]["weak"]))
    valid = by_hand.pasted(by_hand.VALID)
    assert term(pixels) == pytest.approx((((ours - theirs) ** 2).sum(1) * valid).mean(), rel=1e-5)


def test_cutmix_seg_weighs_all_pixels_by_the_share_of_sure_ones() -> None:
    """One number for the batch: unsure pixels learn too, and less of everything is learned if many are unsure."""
    (case,) = by_hand.CASES["CutMixSeg"]
    found = by_hand.step(case)
    sure = by_hand.pasted(by_hand.p(case.given()[1][0]["weak"])).max(1) >= 0.95
    assert 0 < sure.mean() < 1
    assert float(found.loss.logged["kept"]) == pytest.approx(sure.mean())
    nobody, everybody = (by_hand.step(case, threshold=value).loss for value in (1.0, 0.0))
    alone = by_hand.supervised(case.given()[0][0][by_hand.LABELED])
    assert float(nobody.total.detach()) == pytest.approx(alone, rel=1e-5)
    assert float(everybody.total.detach()) == pytest.approx(alone + 2 * term(case), rel=1e-5)


def test_cutmix_seg_asks_its_teacher_for_whole_images(generator: torch.Generator) -> None:
    """Target and valid plane are pasted after; a net that looks around would else see the box's edge."""
    shown: list[Tensor] = []

    class Teacher:
        def __call__(self, images: Tensor) -> Tensor:
            shown.append(images)
            return images

    clean = torch.rand(2, 3, 4, 4, generator=generator)
    batch = Batch(clean, torch.zeros(2, 4, 4, dtype=torch.int64), {"weak": clean})
    paste = Paste(torch.rand(2, 4, 4, generator=generator) < 0.5, torch.tensor([1, 0]))
    identity = nn.Conv2d(3, 3, 1)
    CutMixSeg().loss(Cast((Student(identity, PLAIN),), (Teacher(),)), batch, paste)
    assert torch.equal(shown[0], clean)
