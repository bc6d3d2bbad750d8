import math

import pytest
import torch

from dmt.core.metrics import Confusion
from dmt.types import IGNORE


@pytest.mark.parametrize("sites", [(), (4, 5)], ids=["images", "pixels"])
def test_counts_as_a_loop_would(sites: tuple[int, ...], generator: torch.Generator) -> None:
    logits = torch.randn(30, 3, *sites, generator=generator)
    truth = torch.randint(0, 3, (30, *sites), generator=generator)
    truth[::4] = IGNORE
    meter = Confusion(3)
    meter.add(logits[:11], truth[:11])
    meter.add(logits[11:], truth[11:])
    rows = logits.softmax(1).movedim(1, -1).reshape(-1, 3)
    pairs = [(int(t), p.tolist()) for t, p in zip(truth.flatten(), rows, strict=True) if int(t) != IGNORE]
    right = [p[t] for t, p in pairs if p[t] == max(p)]
    assert meter.count == len(pairs)
    assert meter.accuracy() == pytest.approx(100 * len(right) / len(pairs))
    assert meter.fine_grained() == pytest.approx(100 * sum(right) / len(pairs), rel=1e-5)
    for row in range(3):
        for column in range(3):
            expected = sum(t == row and p.index(max(p)) == column for t, p in pairs)
            assert int(meter.matrix[row, column]) == expected


def test_a_class_without_truth_has_no_recall() -> None:
    meter = Confusion(3)
    meter.add(torch.eye(3)[:2] * 9, torch.tensor([0, 0]))
    assert meter.per_class()[0] == 50.0
    assert math.isnan(meter.per_class()[2])


def test_nothing_counted_is_nan_not_an_error() -> None:
    assert math.isnan(Confusion(3).accuracy())


def test_iou_by_hand() -> None:
    """Four pixels of truth in two classes, a third class only guessed, a fourth nowhere."""
    truth = torch.tensor([[[0, 0, 0], [1, 1, IGNORE]]])  # (1, 2, 3)
    guesses = torch.tensor([[[0, 0, 1], [1, 2, 2]]])
    meter = Confusion(4)
    meter.add(torch.nn.functional.one_hot(guesses, 4).movedim(-1, 1) * 9.0, truth)
    assert meter.count == 5
    assert meter.accuracy() == 60.0  # 3 of 5 pixels
    first, second, third, fourth = meter.iou()
    assert first == pytest.approx(200 / 3)  # 2 right, of 3 true or guessed
    assert second == pytest.approx(100 / 3)  # 1 right, of 3
    assert math.isnan(third)  # guessed, but without truth: a mistake of class 1, no class of these images
    assert math.isnan(fourth)
    assert meter.mean_iou() == pytest.approx(50.0)
    assert meter.absent() == [2, 3]


def test_a_class_that_is_never_found_counts_as_zero() -> None:
    meter = Confusion(2)
    meter.add(torch.tensor([[9.0, 0.0]]).repeat(4, 1), torch.tensor([0, 0, 1, 1]))
    assert meter.iou() == [50.0, 0.0]
    assert meter.mean_iou() == 25.0
    assert meter.absent() == []


def test_one_matrix_over_all_images_not_a_mean_over_images(generator: torch.Generator) -> None:
    logits = torch.randn(6, 3, 5, 7, generator=generator)
    truth = torch.randint(0, 3, (6, 5, 7), generator=generator)
    truth[2] = IGNORE  # an image without any truth
    meter = Confusion(3)
    for logit, mask in zip(logits, truth, strict=True):
        meter.add(logit[None], mask[None])
    known, guesses = truth != IGNORE, logits.argmax(1)
    expected = []
    for label in range(3):
        here, there = known & (truth == label), known & (guesses == label)
        expected.append(100 * int((here & there).sum()) / int((here | there).sum()))
    assert meter.iou() == pytest.approx(expected)
    assert meter.mean_iou() == pytest.approx(sum(expected) / 3)


def test_no_truth_at_all_has_no_mean() -> None:
    meter = Confusion(2)
    meter.add(torch.zeros(1, 2, 3, 3), torch.full((1, 3, 3), IGNORE))
    assert math.isnan(meter.mean_iou())
    assert math.isnan(meter.accuracy())
    assert meter.absent() == [0, 1]


def test_calibration_gathers_sites_by_confidence() -> None:
    meter = Confusion(2)
    sure, unsure = torch.tensor([0.9, 0.1]).log(), torch.tensor([0.35, 0.65]).log()
    meter.add(torch.stack([sure, sure, unsure, unsure]), torch.tensor([0, 1, 1, 0]))
    rows = meter.calibration()
    assert rows[6] == pytest.approx((2, 65.0, 50.0))
    assert rows[8] == pytest.approx((2, 90.0, 50.0)) or rows[9] == pytest.approx((2, 90.0, 50.0))
    assert sum(count for count, _, _ in rows) == meter.count
    assert meter.calibration_error() == pytest.approx(27.5)
