import math

import pytest
import torch

from dmt.core import selection

FRACTIONS = [0.0, 0.01, 0.2, 0.333, 0.4, 0.5, 0.6, 0.8, 0.999, 1.0]


@pytest.mark.parametrize("fraction", FRACTIONS)
@pytest.mark.parametrize("count", [0, 1, 2, 7, 10, 101])
@pytest.mark.parametrize("levels", [1, 3, 10**6], ids=["all tie", "many ties", "no ties"])
def test_exactly_the_quota_whatever_the_ties(
    fraction: float, count: int, levels: int, generator: torch.Generator
) -> None:
    confidence = torch.randint(0, levels, (count,), generator=generator) / levels
    mask = selection.top(confidence, fraction)
    assert int(mask.sum()) == math.floor(fraction * count + 0.5)
    if mask.any() and not mask.all():
        assert confidence[mask].min() >= confidence[~mask].max()


@pytest.mark.parametrize(("fraction", "count", "expected"), [(0.2, 45800, 9160), (0.6, 45800, 27480), (0.145, 100, 15)])
def test_quota_rounds_half_up_in_decimal(fraction: float, count: int, expected: int) -> None:
    assert selection.quota(fraction, count) == expected


def test_of_equals_the_earlier_is_kept() -> None:
    assert selection.top(torch.tensor([0.5, 0.9, 0.5, 0.5]), 0.5).tolist() == [True, True, False, False]


@pytest.mark.parametrize("fraction", FRACTIONS)
def test_per_class_keeps_the_quota_of_each(fraction: float, generator: torch.Generator) -> None:
    labels = torch.randint(0, 4, (203,), generator=generator)
    labels[labels == 2] = 3  # class 2 is predicted nowhere, and class 5 does not exist
    confidence = torch.randint(0, 20, (203,), generator=generator) / 20
    mask = selection.top_per_class(confidence, labels, fraction, classes=6)
    for label in range(6):
        mine = labels == label
        assert int((mask & mine).sum()) == math.floor(fraction * int(mine.sum()) + 0.5)
        assert torch.equal(mask[mine], selection.top(confidence[mine], fraction))


def test_thresholds_are_where_the_confidence_is() -> None:
    confidence, labels = torch.tensor([0.9, 0.5, 0.8]), torch.tensor([0, 0, 1])
    with torch.device("meta"):  # a tensor made without a device would be there
        found = selection.thresholds(confidence, labels, 0.5, classes=3)
    assert found.tolist() == pytest.approx([0.9, 0.8, 1.0])
