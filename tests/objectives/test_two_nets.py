"""Two nets that exchange probabilities, or images made to fool. Whole losses are in test_by_hand.py."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmt.core.execution import Execution
from dmt.objectives.base import Cast, Progress
from dmt.objectives.noisy import Choice, CoTeaching, CoTeachingPlus, easiest
from dmt.objectives.remembered import TemporalEnsembling
from dmt.objectives.two_nets import DeepCoTraining, DualStudent, jensen_shannon
from dmt.training.trainer import Student
from dmt.types import IGNORE, Batch, BatchShape, Sizes
from tests.objectives.by_hand import Table

CPU = torch.device("cpu")
PLAIN = Execution(CPU)
SURE, SURER, MILD, DOUBT, OTHER = (4.0, 0.0, 0.0), (6.0, 0.0, 0.0), (1.5, 0.0, 0.0), (0.5, 0.0, 0.0), (0.0, 4.0, 0.0)
"""Logits: .96, .995, .69 and .45 of class 0, .96 of class 1."""


def rows(*places: int) -> Tensor:
    """Images that a table answers with these rows."""
    return torch.tensor(places, dtype=torch.float32).view(-1, 1, 1, 1)


def net(*logits: tuple[float, ...]) -> Table:
    return Table(np.array(logits), pixels=False)


def gradients_of(first: tuple[tuple[float, ...], ...], second: tuple[tuple[float, ...], ...]) -> list[bool]:
    """Whether each net learns anything of one unlabeled image, given its logits in both views; its own views apart."""
    tables = [net(*first, (0.0, 0.0, 0.0)), net(*second, (0.0, 0.0, 0.0))]
    batch = Batch(rows(2), torch.tensor([IGNORE]), {"weak": rows(0), "weak2": rows(1)})
    DualStudent(own=0.0).loss(Cast(tuple(tables)), batch, torch.tensor(1.0)).total.backward()  # type: ignore[no-untyped-call]
    return [bool(table.rows.grad is not None and table.rows.grad.abs().sum() > 0) for table in tables]


def test_the_steadier_student_teaches_the_other() -> None:
    """Stable is one class in both views, sure in at least one; of two stable ones the steadier teaches."""
    stable, steadier, torn, unsure = (SURE, MILD), (SURE, SURER), (SURE, OTHER), (DOUBT, DOUBT)
    assert gradients_of(stable, torn) == [False, True]
    assert gradients_of(unsure, stable) == [True, False]
    assert gradients_of(stable, steadier) == [True, False]
    assert gradients_of(steadier, stable) == [False, True]
    assert gradients_of(torn, unsure) == [False, False]


def test_a_student_learns_the_probabilities_that_its_peer_gives_its_own_view() -> None:
    tables = [net(SURE, OTHER, (0.0, 0.0, 0.0)), net(SURER, MILD, (0.0, 0.0, 0.0))]
    batch = Batch(rows(2), torch.tensor([IGNORE]), {"weak": rows(0), "weak2": rows(1)})
    loss = DualStudent(own=0.0).loss(Cast(tuple(tables)), batch, torch.tensor(2.0))
    mine, taught = torch.tensor(SURE).softmax(0), torch.tensor(MILD).softmax(0)  # each of its own view
    assert float(loss.total.detach()) == pytest.approx(2.0 * float((mine - taught).square().sum() / 3), abs=1e-6)
    assert float(loss.logged["stable"]) == 0.5


def linear(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(27, 4))


def test_images_that_fool_go_along_the_sign_of_the_gradient(generator: torch.Generator) -> None:
    """Of a linear net the gradient is known: Wᵀ(p − onehot)."""
    body = linear(3)
    images, labels = torch.rand(5, 3, 3, 3, generator=generator), torch.tensor([0, 1, 2, 3, 0])
    found = Student(body, PLAIN).input_gradient(images, labels)
    weight = body[1].weight  # type: ignore[index]
    wrong = body(images).softmax(1) - F.one_hot(labels, 4)
    torch.testing.assert_close(found, (wrong @ weight).view_as(images))
    assert all(each.grad is None for each in body.parameters())
    assert not found.requires_grad


def test_they_are_made_in_eval_mode_without_a_trace(generator: torch.Generator) -> None:
    body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5), nn.Flatten()).train()
    before = {name: buffer.clone() for name, buffer in body.named_buffers()}
    images, labels = torch.rand(6, 3, 3, 3, generator=generator), torch.zeros(6, dtype=torch.int64)
    student = Student(body, PLAIN)
    together = student.input_gradient(images, labels)
    alone = torch.cat([student.input_gradient(images[[at]], labels[[at]]) for at in range(6)])
    torch.testing.assert_close(together, alone)  # neither batch statistics nor dropout
    assert body.training
    assert all(torch.equal(buffer, before[name]) for name, buffer in body.named_buffers())


def test_deep_co_training_counts_what_fools_one_net_against_the_other(generator: torch.Generator) -> None:
    bodies = [linear(1), linear(2)]
    images, unlabeled = (torch.rand(count, 3, 3, 3, generator=generator) for count in (4, 6))
    truth = torch.tensor([0, 1, 2, 3])
    objective = DeepCoTraining(agree=0.0, differ=1.0, step=0.1)
    cast = Cast(tuple(Student(body, PLAIN) for body in bodies))
    found = objective.loss(cast, Batch(images, truth, {"weak": unlabeled}), torch.tensor(1.0))
    expected = torch.zeros(())
    for mine, other in ((0, 1), (1, 0)):
        known, labels = images[mine::2], truth[mine::2]
        expected = expected + F.cross_entropy(bodies[mine](known), labels)
        shown = torch.cat([unlabeled, known])
        probabilities = bodies[mine](shown).softmax(1)
        told = torch.cat([bodies[mine](unlabeled).argmax(1), labels])
        slope = ((probabilities - F.one_hot(told, 4)) @ bodies[mine][1].weight).view_as(shown)  # type: ignore[index]
        fooling = shown + 0.1 * slope.detach().sign()
        expected = expected - (probabilities * bodies[other](fooling).log_softmax(1)).sum(1).mean()
    torch.testing.assert_close(found.total, expected)
    assert DeepCoTraining.input_gradient  # so that nobody compiles or records the step


def test_jensen_shannon_lies_between_0_and_log_2() -> None:
    logits = torch.tensor([[9.0, -9.0], [0.3, 0.1], [90.0, -90.0]])
    torch.testing.assert_close(jensen_shannon(logits, logits), torch.zeros(3))
    apart = jensen_shannon(logits, logits.flip(1))
    assert apart[2] == pytest.approx(np.log(2.0))
    assert bool(torch.isfinite(apart).all())


def test_each_net_learns_what_its_peer_finds_easy() -> None:
    """The first sample can be chosen like any other, and means are over what was chosen."""
    tables = [
        net((2.0, 0.0), (0.0, 0.0), (-3.0, 0.0), (1.0, 0.0)),
        net((3.0, 0.0), (-1.0, 0.0), (2.0, 0.0), (0.0, 0.0)),
    ]
    batch = Batch(rows(0, 1, 2, 3), torch.zeros(4, dtype=torch.int64))
    loss = CoTeaching().loss(Cast(tuple(tables)), batch, Choice(torch.tensor(0.5), torch.tensor(True)))
    losses = [F.cross_entropy(table.rows.detach().float(), batch.truth, reduction="none") for table in tables]
    expected = (losses[0][0] + losses[0][2]) / 2 + (losses[1][0] + losses[1][3]) / 2
    assert float(loss.total.detach()) == pytest.approx(float(expected))


def test_after_a_while_only_disagreements_teach() -> None:
    tables = [
        net((2.0, 0.0), (0.0, 1.0), (3.0, 0.0)),
        net((1.0, 0.0), (1.0, 0.0), (0.0, 2.0)),
    ]  # of 1 and 2 they differ
    batch = Batch(rows(0, 1, 2), torch.zeros(3, dtype=torch.int64))
    objective, shape = CoTeachingPlus(noise=0.5, ramp=0.0, start=0.4), BatchShape(3, 0, 1, 1)
    losses = [F.cross_entropy(table.rows.detach().float(), batch.truth, reduction="none") for table in tables]
    early, late = (objective.draw(Progress(step, 10, 1), shape, CPU) for step in (3, 4))
    assert (bool(early.agreed), bool(late.agreed)) == (True, False)
    found = objective.loss(Cast(tuple(tables)), batch, late)
    assert float(found.total.detach()) == pytest.approx(float(losses[0][1] + losses[1][2]))
    agreed = objective.loss(Cast((tables[0], tables[0])), batch, late)
    assert float(agreed.total.detach()) == 0.0


def test_the_share_that_is_learned_falls_to_what_is_right() -> None:
    objective, shape = CoTeaching(noise=0.4, ramp=0.5), BatchShape(8, 0, 1, 1)
    shares = [float(objective.draw(Progress(step, 10, 1), shape, CPU).share) for step in (0, 1, 5, 9)]
    assert shares == pytest.approx([1.0, 0.92, 0.6, 0.6])


def test_the_easiest_are_as_many_as_asked_for() -> None:
    sites, candidates = torch.tensor([0.5, 0.1, 0.5, 0.2, 0.0]), torch.tensor([True, True, True, True, False])
    assert easiest(sites, candidates, torch.tensor(0.75)).tolist() == [True, True, False, True, False]
    assert easiest(sites, candidates, torch.tensor(0.0)).sum() == 0


def test_what_was_said_before_is_averaged_without_bias() -> None:
    """After two visits the target is (α·p₁ + p₂)/(α + 1), and an image that comes twice is remembered once."""
    objective = TemporalEnsembling(decay=0.6)
    memory = dict(objective.memory(Sizes(1, 3, 4), 3))
    tables = [net(SURE, OTHER, DOUBT), net(OTHER, DOUBT, DOUBT), net(DOUBT, DOUBT, DOUBT)]
    found = []
    for table in tables:
        batch = Batch(rows(2), torch.tensor([IGNORE]), {"weak": rows(0, 1, 1)}, positions=torch.tensor([2, 0, 0]))
        loss = objective.loss(Cast((table,), memory=memory), batch, torch.tensor(1.0))
        memory |= loss.memory
        found.append(float(loss.total.detach()))
    said = [[torch.tensor(row).softmax(0) for row in pair] for pair in ((SURE, OTHER), (OTHER, DOUBT))]
    averages = [(0.6 * first + second) / 1.6 for first, second in zip(*said, strict=True)]
    now = torch.tensor(DOUBT).softmax(0)
    squares = [float((now - average).square().sum() / 3) for average in averages]
    assert found[0] == 0.0
    assert found[2] == pytest.approx((squares[0] + 2 * squares[1]) / 3)
    assert memory["visits"].tolist() == [3.0, 0.0, 3.0]
