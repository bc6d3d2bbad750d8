"""Eq. 6 against a loop over sites in plain Python, for images and for pixels."""

import math
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from dmt.core import weighting
from dmt.types import IGNORE, Target

SHAPES = pytest.mark.parametrize("sites", [(), (5, 7)], ids=["images", "pixels"])
CLASSES = 4


def make(sites: tuple[int, ...], generator: torch.Generator) -> tuple[Tensor, Target]:
    """Random logits and targets, some sites unlabeled, with all three cases among them."""
    logits = 2 * torch.randn(60, CLASSES, *sites, generator=generator)
    labels = torch.randint(0, CLASSES, (60, *sites), generator=generator)
    labels[torch.rand(labels.shape, generator=generator) < 0.2] = IGNORE
    return logits, Target(labels, torch.rand(labels.shape, generator=generator))


def each_site(logits: Tensor, target: Target) -> Iterator[tuple[list[float], int, float]]:
    """(probabilities, teacher's label, teacher's confidence) site by site, computed in Python floats."""
    columns = logits.movedim(1, -1).reshape(-1, CLASSES).tolist()
    for scores, label, sure in zip(
        columns, target.labels.flatten().tolist(), target.confidence.flatten().tolist(), strict=True
    ):
        exponentials = [math.exp(score) for score in scores]
        yield [each / sum(exponentials) for each in exponentials], label, sure


def slow(name: str, logits: Tensor, target: Target, gamma1: float, gamma2: float) -> tuple[list[int], list[float]]:
    """The four weightings as the paper says them."""
    labels, weights = [], []
    for p, y_a, c_a in each_site(logits, target):
        y_b = p.index(max(p))
        c_b = p[y_b]
        label, weight = y_a, 0.0
        if y_a == IGNORE:
            weight = 0.0
        elif name == "uniform":
            weight = 1.0
        elif name == "naive" or y_a == y_b:
            weight = p[y_a] ** gamma1
        elif c_a >= c_b:
            weight = p[y_a] ** gamma2
        elif name == "flip":
            label, weight = y_b, (1 - c_a) ** gamma2
        labels.append(label)
        weights.append(weight)
    return labels, weights


@SHAPES
@pytest.mark.parametrize("name", weighting.WEIGHTINGS)
@pytest.mark.parametrize(("gamma1", "gamma2"), [(5.0, 5.0), (3.0, 1.5), (0.0, 0.0)])
def test_equals_a_loop_over_sites(
    name: str, sites: tuple[int, ...], gamma1: float, gamma2: float, generator: torch.Generator
) -> None:
    logits, target = make(sites, generator)
    labels, weights = weighting.WEIGHTINGS[name](logits, target, gamma1, gamma2)
    expected_labels, expected_weights = slow(name, logits, target, gamma1, gamma2)
    assert labels.flatten().tolist() == expected_labels
    assert weights.shape == target.labels.shape
    torch.testing.assert_close(weights.flatten(), torch.tensor(expected_weights), rtol=1e-4, atol=1e-6)


@SHAPES
def test_all_three_cases_occur_in_these_tests(sites: tuple[int, ...], generator: torch.Generator) -> None:
    cases = weighting.opinion(*make(sites, generator)).cases
    assert set(cases.flatten().tolist()) == {IGNORE, weighting.AGREE, weighting.NEGATIVE, weighting.POSITIVE}


def test_a_tie_belongs_to_the_teacher() -> None:
    logits = torch.tensor([[2.0, 0.0, 0.0]])
    own = logits.softmax(1).max(1).values
    tie = Target(torch.tensor([1]), own)
    surer = Target(torch.tensor([1]), torch.nextafter(own, torch.zeros(1)))
    p = logits.softmax(1)[0, 1]
    assert weighting.dynamic(logits, tie, 2.0)[1].item() == pytest.approx(float(p**2))
    assert weighting.dynamic(logits, surer, 2.0)[1].item() == 0.0


def test_gamma_zero_is_not_off() -> None:
    """1, 1, 0 for the three cases: the third stays shut, so "off" is `uniform`."""
    logits = torch.tensor([[3.0, 0.0], [3.0, 0.0], [3.0, 0.0]])
    target = Target(torch.tensor([0, 1, 1]), torch.tensor([0.6, 0.99, 0.6]))
    assert weighting.dynamic(logits, target, 0.0)[1].tolist() == [1.0, 1.0, 0.0]
    assert weighting.uniform(logits, target)[1].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("name", weighting.WEIGHTINGS)
def test_carries_no_gradient_and_computes_in_float32(name: str, generator: torch.Generator) -> None:
    logits, target = make((), generator)
    half = logits.to(torch.bfloat16).requires_grad_()
    labels, weights = weighting.WEIGHTINGS[name](half, target, 4.0, None)
    assert not weights.requires_grad
    assert not labels.requires_grad
    assert weights.dtype == torch.float32
    torch.testing.assert_close(weights, weighting.WEIGHTINGS[name](half.float(), target, 4.0, None)[1])


def test_gamma_may_be_a_tensor(generator: torch.Generator) -> None:
    logits, target = make((), generator)
    by_tensor = weighting.dynamic(logits, target, torch.tensor(4.0), torch.tensor(2.0))[1]
    torch.testing.assert_close(by_tensor, weighting.dynamic(logits, target, 4.0, 2.0)[1])


def test_truth_is_never_changed(generator: torch.Generator) -> None:
    logits, target = make((5, 7), generator)
    labels, confidence = target.labels.clone(), target.confidence.clone()
    for weigh in weighting.WEIGHTINGS.values():
        weigh(logits, target, 5.0, None)
    assert torch.equal(target.labels, labels)
    assert torch.equal(target.confidence, confidence)
