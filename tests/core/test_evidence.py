"""Evidence gives back the scores it was taken from, and tells differences from chance."""

import numpy as np
import pytest
import torch

from dmt.core import evidence
from dmt.core.evidence import Evidence, EvidenceCollector
from dmt.core.metrics import Confusion
from dmt.types import IGNORE

CLASSES = 4


def seen(logits: torch.Tensor, truth: torch.Tensor, step: int) -> Evidence:
    collector = EvidenceCollector(len(truth), CLASSES, truth.dim() > 1)
    order = torch.randperm(len(truth), generator=torch.Generator().manual_seed(1))
    for positions in torch.split(order, step):
        collector.add(positions, logits[positions], truth[positions])
    return collector.evidence()


@pytest.mark.parametrize("shape", [(50,), (9, 6, 5)])
def test_scores_equal_those_of_the_meter(shape: tuple[int, ...]) -> None:
    chance = torch.Generator().manual_seed(0)
    truth = torch.randint(0, CLASSES, shape, generator=chance)
    logits = torch.randn(shape[0], CLASSES, *shape[1:], generator=chance) + 2 * torch.nn.functional.one_hot(
        truth, CLASSES
    ).movedim(-1, 1)
    if len(shape) > 1:
        truth[0] = IGNORE  # an image without truth
        truth[1, 0] = IGNORE
    meter = Confusion(CLASSES)
    meter.add(logits, truth)
    found = Evidence.of(seen(logits, truth, 4).arrays())
    assert (found.matrix() == meter.matrix.numpy()).all()
    assert found.score() == pytest.approx(meter.mean_iou() if len(shape) > 1 else meter.accuracy())
    assert found.fine_grained() == pytest.approx(meter.fine_grained(), rel=1e-5)
    per_class = meter.iou() if len(shape) > 1 else meter.per_class()
    assert np.allclose(found.per_class(), per_class, equal_nan=True)


def images(right: np.ndarray) -> Evidence:
    """Two classes; truth is 0, and the right ones were called so."""
    count = len(right)
    zeros, ones = np.zeros(count, np.int32), np.ones(count, np.int32)
    return Evidence(np.arange(count, dtype=np.int32), zeros, 1 - right.astype(np.int32), ones, right * 0.9, 2, False)


def test_a_paired_interval_tells_a_difference_that_two_scores_would_not() -> None:
    before = np.arange(400) % 5 != 0  # 80 %
    after = before | (np.arange(400) % 20 == 0)  # a quarter of its errors mended, nothing lost
    interval = evidence.difference([images(after)], [images(before)])
    assert interval.value == pytest.approx(5.0)
    assert interval.clear
    assert 2.5 < interval.low < 5 < interval.high < 7.5


def test_noise_is_not_clear() -> None:
    chance = np.random.default_rng(0)
    first, second = chance.random(60) < 0.7, chance.random(60) < 0.7
    interval = evidence.difference([images(first)], [images(second)])
    assert not interval.clear
    assert interval.low < interval.value < interval.high


def test_other_images_are_refused() -> None:
    with pytest.raises(ValueError, match="same images"):
        evidence.difference([images(np.ones(3))], [images(np.ones(4))])


def test_no_truth_at_all_is_no_score() -> None:
    nothing = EvidenceCollector(2, CLASSES, True)
    nothing.add(torch.arange(2), torch.randn(2, CLASSES, 3, 3), torch.full((2, 3, 3), IGNORE))
    assert np.isnan(nothing.evidence().score())
    assert np.isnan(nothing.evidence().fine_grained())


@pytest.mark.parametrize("shape", [(30,), (9, 6, 5)])
def test_many_draws_at_once_are_each_draw_alone(shape: tuple[int, ...]) -> None:
    chance = torch.Generator().manual_seed(3)
    truth = torch.randint(0, CLASSES, shape, generator=chance)
    found = seen(torch.randn(shape[0], CLASSES, *shape[1:], generator=chance), truth, 4)
    times = evidence.draws(shape[0], 20)
    assert np.allclose(found.scores(times), [found.score(row) for row in times])
    assert np.allclose(found.scores(times, fine=True), [found.fine_grained(row) for row in times])
    assert np.allclose(found.class_scores(np.ones((1, shape[0])))[0], found.per_class(), equal_nan=True)
    assert np.isnan(found.scores(np.zeros((1, shape[0])))).all()  # nothing drawn, nothing known


def test_how_far_nets_are_apart() -> None:
    first, second = np.arange(100) < 90, np.arange(100) < 75
    assert evidence.apart(images(first), images(second)) == pytest.approx(0.15)
    assert evidence.apart(images(first), images(first)) == 0.0
    truth = torch.zeros(1, 4, 5, dtype=torch.long)
    logits = torch.zeros(1, CLASSES, 4, 5)
    logits[:, 1, 0], moved = 1.0, logits.clone()
    moved[:, 1, 0], moved[:, 1, 1] = 0.0, 1.0  # the same mistake in another row cannot be seen
    assert evidence.apart(seen(logits, truth, 1), seen(moved, truth, 1)) == 0.0
    assert evidence.apart(seen(logits, truth, 1), seen(torch.zeros_like(logits), truth, 1)) == pytest.approx(0.25)


def test_an_interval_of_one_score() -> None:
    right = images(np.arange(200) % 4 > 0)
    found = evidence.interval(right.score(), evidence.spread([right], []))
    assert found.low < found.value == 75.0 < found.high
    assert 4 < (found.high - found.low) / 2 < 6  # 1.645 · √(0.75 · 0.25 / 200)
    assert np.isnan(evidence.interval(0.0, np.full(3, np.nan)).low)


def test_few_seeds_are_not_too_sure() -> None:
    """Without any true gain, about one of ten verdicts may be clear, and hardly more of few seeds."""
    chance, nothing = np.random.default_rng(0), np.zeros((1, 1000))
    for seeds in (2, 3, 12):
        found = [evidence.over_seeds(gains, gains[:, None] + nothing) for gains in chance.normal(size=(400, seeds))]
        assert 0.05 < np.mean([each.clear for each in found]) < 0.15
    alone = evidence.over_seeds([2.0], np.linspace(1, 3, 1000)[None])
    assert (alone.low, alone.high) == pytest.approx((1.1, 2.9))
    same = evidence.over_seeds([2.0, 2.0], np.tile(np.linspace(-1, 5, 1000), (2, 1)))
    assert not same.clear  # seeds agree, but on images that may have been lucky


def test_classes_that_change_clearly() -> None:
    """Of class 0 a fifth is lost, of 1 and 2 nothing, and of class 3 there are too few images to tell."""
    truth = np.repeat(np.arange(4, dtype=np.int32), [100, 100, 100, 3])
    ones, sure = np.ones(len(truth), np.int32), np.ones(len(truth), np.float32)
    worse = truth.copy()
    worse[:20], worse[-3:] = 1, 0
    place = np.arange(len(truth), dtype=np.int32)
    before, after = (Evidence(place, truth, said, ones, sure, CLASSES, False) for said in (truth, worse))
    change, clear = evidence.class_changes([after], [before])
    assert change.tolist() == [-20.0, 0.0, 0.0, -100.0]
    assert clear.tolist() == [True, False, False, False]
    assert (evidence.class_changes([before, after], [before, before])[0] == change / 2).all()


def test_draws_are_small_and_whole() -> None:
    times = evidence.draws(700, 50)
    assert times.dtype == np.uint8
    assert (times.sum(1) == 700).all()
