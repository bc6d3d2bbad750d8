"""Every objective on 2 samples × 3 classes beside the same in plain numpy: its loss and who gets a gradient."""

from typing import Any

import numpy as np
import pytest
import torch

from dmt.objectives.guessing import MixDraw, TurnDraw
from tests.objectives import by_hand, cases
from tests.objectives.by_hand import Case

CASES = [case for known in cases.CASES.values() for case in known]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_loss_is_the_one_computed_by_hand(case: Case) -> None:
    loss = by_hand.step(case).loss
    assert float(loss.total.detach()) == pytest.approx(by_hand.expected(case), rel=1e-5)
    assert not any(number.requires_grad for number in loss.logged.values())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_only_what_learns_gets_a_gradient(case: Case) -> None:
    """The slope by hand holds every target still: what a peer, another view or a slow copy teaches."""
    step = by_hand.step(case)
    step.loss.total.backward()  # type: ignore[no-untyped-call]
    for net, slope in zip(step.nets, by_hand.slopes(case), strict=True):
        assert net.rows.grad is not None
        np.testing.assert_allclose(net.rows.grad.numpy(), slope, atol=1e-6, rtol=1e-4)
        assert np.abs(slope).max() > 1e-3
    assert all(slow.rows.grad is None for slow in step.slow)


@pytest.mark.parametrize("case", [case for case in CASES if hasattr(case.objective, "weight")], ids=str)
def test_without_weight_the_truth_alone_teaches(case: Case) -> None:
    draw: Any = torch.tensor(0.0) if isinstance(case.draw, torch.Tensor) else None
    if isinstance(case.draw, MixDraw | TurnDraw):
        draw = case.draw._replace(mix=None)  # else labeled images show parts of the others
    nothing = by_hand.step(case, draw=draw, **by_hand.weightless(case.objective)).loss.total
    alone = sum(by_hand.supervised(net[by_hand.LABELED]) for net in case.given()[0])
    assert float(nothing.detach()) == pytest.approx(alone, rel=1e-5)
