"""Two nets teach each other: each term reaches one of them. Whole losses are in test_by_hand.py."""

import dataclasses

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmt.core.execution import Execution
from dmt.objectives.base import Cast
from dmt.objectives.peers import CrossPseudo
from dmt.training.trainer import Student
from dmt.types import Batch
from tests.objectives import by_hand

PLAIN = Execution(torch.device("cpu"))


def nets() -> list[nn.Module]:
    found: list[nn.Module] = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        found.append(nn.Sequential(nn.Flatten(), nn.Linear(27, 4)))
    return found


@pytest.fixture
def batch(generator: torch.Generator) -> Batch:
    images = torch.rand(3, 3, 3, 3, generator=generator)
    return Batch(images, torch.tensor([0, 1, 3]), {"weak": torch.rand(8, 3, 3, 3, generator=generator)})


def gradient(net: nn.Module) -> Tensor:
    return torch.cat([each.grad.flatten() for each in net.parameters() if each.grad is not None])


@pytest.mark.parametrize("mine", [0, 1])
def test_each_net_gets_the_gradient_of_its_own_terms_alone(mine: int, batch: Batch) -> None:
    """What the other learns is taken out of the loss; nothing changes for this one."""
    both = nets()
    CrossPseudo(1.5).loss(Cast(tuple(Student(net, PLAIN) for net in both)), batch, None).total.backward()  # type: ignore[no-untyped-call]
    twins = nets()
    everything = torch.cat([batch.views["weak"], batch.images])
    with torch.no_grad():
        labels = twins[1 - mine](everything).argmax(1)
    own = F.cross_entropy(twins[mine](batch.images), batch.truth) + 1.5 * F.cross_entropy(
        twins[mine](everything), labels
    )
    own.backward()  # type: ignore[no-untyped-call]
    torch.testing.assert_close(gradient(both[mine]), gradient(twins[mine]))
    assert all(each.grad is None for each in twins[1 - mine].parameters())


@pytest.mark.parametrize("case", [*by_hand.CASES["CrossPseudo"], *by_hand.CASES["CrossPseudoPasted"]], ids=str)
def test_a_peer_that_is_equally_right_but_surer_teaches_the_same(case: by_hand.Case) -> None:
    """Labels are hard, without a threshold: how sure the other is does not matter."""
    found = []
    for factor in (1.0, 9.0):
        tables = [by_hand.Table(by_hand.rows(each), case.pixels) for each in case.given()[0]]
        with torch.no_grad():
            tables[1].rows.mul_(factor)
        case.objective.loss(Cast(tuple(tables)), by_hand.batch_of(case), case.draw).total.backward()  # type: ignore[no-untyped-call]
        assert tables[0].rows.grad is not None
        found.append(tables[0].rows.grad.numpy())
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize(("name", "counted"), [("CrossPseudo", True), ("CrossPseudoPasted", False)])
def test_without_pasting_labeled_images_are_labeled_by_the_peer_too(name: str, counted: bool) -> None:
    case = next(case for case in by_hand.CASES[name] if case.pixels)
    full = by_hand.batch_of(case)
    tables = [by_hand.Table(by_hand.rows(each), case.pixels) for each in case.given()[0]]
    other = dataclasses.replace(full, images=full.images.roll(1, 0), truth=full.truth.roll(1, 0))
    halved = dataclasses.replace(full, images=full.images[:1], truth=full.truth[:1])
    crosses = [
        float(case.objective.loss(Cast(tuple(tables)), each, case.draw).logged["unlabeled"])
        for each in (full, other, halved)
    ]
    assert crosses[0] == pytest.approx(crosses[1])
    assert (crosses[0] != pytest.approx(crosses[2])) == counted


def test_agreement_is_told() -> None:
    case = by_hand.CASES["CrossPseudo"][1]
    first, second = (each["weak"].argmax(1) for each in case.given()[0])
    assert float(by_hand.step(case).loss.logged["agree"]) == pytest.approx((first == second).mean())
