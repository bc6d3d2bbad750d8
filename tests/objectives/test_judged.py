"""Judges: who gets which gradient, what is kept, and what flaws are. Whole losses are in test_by_hand.py."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dmt.objectives import flaws, judged, judges
from dmt.objectives.base import Progress
from dmt.objectives.judged import S4GAN, AdvSemiSeg
from dmt.objectives.judges import FlawDetector, ImageJudge, PixelJudge
from dmt.types import BatchShape
from tests.objectives import by_hand, by_hand_pixels

CPU = torch.device("cpu")


@pytest.mark.parametrize("size", [(5, 9), (64, 64), (70, 97)])
def test_judges_take_images_of_any_size(size: tuple[int, int]) -> None:
    maps = torch.rand(2, 3, *size)
    assert PixelJudge(3, 4)(maps).shape == (2, *size)
    assert FlawDetector(3, 4)(maps).shape == (2, *size)
    score, features = ImageJudge(3, 4)(maps)
    assert score.shape == (2,)
    assert features.shape == (2, 32)


def test_scores_lie_where_their_pixels_are() -> None:
    """What is scored high stands at the left, also where images are enlarged and padded."""
    judge = PixelJudge(1, 4)
    judge.body = nn.Sequential(nn.AvgPool2d(32))
    for size in ((32, 32), (64, 160)):
        maps = torch.zeros(1, 1, *size)
        maps[..., : size[1] // 2] = 1.0
        found = judge(maps)[0]
        assert (found[:, 0] > 0.9).all()
        assert (found[:, -1] < 0.1).all()


@pytest.mark.parametrize("name", ["AdvSemiSeg", "S4GAN", "GCT"])
def test_the_judge_learns_by_its_own_loss_alone(name: str) -> None:
    """Fooling it teaches the net and not the judge: another weight of that changes nothing of the judge's gradient."""
    (case,) = by_hand_pixels.CASES[name]
    changes = {"AdvSemiSeg": "adversarial", "S4GAN": "matching", "GCT": "correction"}
    found = [_judge_gradient(case, **{changes[name]: weight}) for weight in (0.0, 5.0)]
    assert float(found[0].abs().max()) > 1e-3
    torch.testing.assert_close(found[0], found[1])


def _judge_gradient(case: by_hand.Case, **changes: Any) -> Tensor:
    (judge,) = case.parts.values()
    judge.zero_grad()
    by_hand.step(case, **changes).loss.total.backward()  # type: ignore[no-untyped-call]
    return torch.cat([each.grad.flatten() for each in judge.parameters() if each.grad is not None])


def test_own_labels_are_a_mean_over_what_is_kept_and_0_if_nothing_is() -> None:
    """Here this is what was published; elsewhere a mean over the kept pixels would be another method."""
    (case,) = by_hand_pixels.CASES["AdvSemiSeg"]
    kept = by_hand.step(case, threshold=0.0).loss.logged
    assert float(kept["kept"]) == 1.0
    logits = case.given()[0][0]["weak"]
    everywhere = by_hand.ce(logits, logits.argmax(1))
    assert float(kept["unlabeled"]) == pytest.approx(everywhere[by_hand.VALID].mean(), rel=1e-5)
    nothing = by_hand.step(case, threshold=1.0).loss.logged
    assert float(nothing["kept"]) == 0.0
    assert float(nothing["unlabeled"]) == 0.0
    (case,) = by_hand_pixels.CASES["S4GAN"]
    assert float(by_hand.step(case, threshold=1.0).loss.logged["unlabeled"]) == 0.0


def test_own_labels_teach_late() -> None:
    shape = BatchShape(2, 2, 4, 4)
    steps = [float(AdvSemiSeg(start=0.25).draw(Progress(step, 100, 1), shape, CPU)) for step in (0, 24, 25, 99)]
    assert steps == [0.0, 0.0, 1.0, 1.0]


def test_a_judge_of_images_drops_only_while_it_learns() -> None:
    judge, maps = ImageJudge(3, 8), torch.rand(2, 3, 64, 64)
    seeds = S4GAN().draw(Progress(3, 9, 1), BatchShape(2, 2, 64, 64), CPU).predicted
    plain, again = (judge(maps)[0] for _ in range(2))
    assert torch.equal(plain, again)
    assert not torch.equal(judge(maps, seeds)[0], plain)
    assert torch.equal(judge(maps, seeds)[0], judge(maps, seeds)[0])
    frozen = judges.frozen(judge, maps.requires_grad_())[0].sum()
    assert torch.equal(frozen, judge(maps)[0].sum())
    frozen.backward()
    assert maps.grad is not None
    assert all(each.grad is None for each in judge.parameters())


def test_truth_is_a_map_of_probabilities() -> None:
    found = judged.one_hot(torch.tensor([[[2, -1]]]), torch.zeros(1, 3, 1, 2))
    assert found[0, :, 0].T.tolist() == [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]


def test_true_flaws_are_around_wrong_pixels() -> None:
    truth = torch.zeros(1, 32, 32, dtype=torch.int64)
    truth[0, :4] = -1
    probabilities = judged.one_hot(torch.zeros_like(truth), torch.zeros(1, 3, 32, 32))
    probabilities[0, :, 20, 20] = torch.tensor([0.0, 1.0, 0.0])
    probabilities[0, :, :4] = 1 / 3  # without a label, no flaw
    found = flaws.true_flaws(probabilities, truth)
    assert int(found[0].argmax()) in {32 * row + column for row in (19, 20, 21) for column in (19, 20, 21)}
    assert float(found.max()) == pytest.approx(1.0)
    assert float(found[0, :10].max()) == 0.0


def test_small_flaws_are_none_and_others_reach_from_0_to_1() -> None:
    raw = torch.full((3, 8, 8), -2.0)
    raw[1, 4, 4], raw[2, 4, 4] = 0.09, 0.5
    found = flaws.flaw_map(raw)
    assert found[:2].abs().max() == 0
    assert float(found[2].max()) == pytest.approx(1.0)
    assert float(found.min()) == 0.0


def test_blur_keeps_what_is_even() -> None:
    torch.testing.assert_close(flaws.blurred(torch.full((2, 40, 30), 0.7), 4), torch.full((2, 40, 30), 0.7))
    spot = torch.zeros(1, 41, 41)
    spot[0, 20, 20] = 1.0
    found = flaws.blurred(spot, 4)
    assert float(found.sum()) == pytest.approx(1.0)
    assert found[0, 20, 15:26].argmax() == 5
    torch.testing.assert_close(found, found.transpose(1, 2))
