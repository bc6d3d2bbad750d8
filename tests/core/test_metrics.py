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
