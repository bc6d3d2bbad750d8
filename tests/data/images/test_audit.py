import pytest
import torch

from dmt.data.images.audit import Audit
from dmt.data.sets import LabeledSet

NOTHING = LabeledSet((), torch.zeros(0, 1, 1, 1, dtype=torch.uint8), torch.zeros(0, dtype=torch.int64))


def test_errors_of_the_most_confident_and_of_the_kept() -> None:
    truth = torch.tensor([0, 1, 2, 3, 4])
    labels = torch.tensor([0, 1, 2, 9, 9])  # the two least confident are wrong
    confidence = torch.tensor([0.9, 0.8, 0.7, 0.6, 0.5])
    selected = torch.tensor([True, True, True, True, False])
    weights = torch.tensor([1.0, 1.0, 0.5, 0.5, 0.0])
    numbers = Audit(truth, NOTHING).pseudo_labels(labels, confidence, selected, weights)
    assert numbers["error_top"] == pytest.approx({"20%": 0, "40%": 0, "60%": 0, "80%": 25, "100%": 40})
    assert numbers["error_top_weighted"] == pytest.approx({"20%": 0, "40%": 0, "60%": 0, "80%": 50 / 3, "100%": 50 / 3})
    assert numbers["error_kept"] == pytest.approx(25.0)
    assert numbers["error_kept_weighted"] == pytest.approx(100 * 0.5 / 3)
    assert numbers["weight_right"] == pytest.approx(2.5 / 3)
    assert numbers["weight_wrong"] == pytest.approx(0.5)


def test_what_cannot_be_counted_is_none() -> None:
    truth = torch.tensor([0, 1])
    perfect = Audit(truth, NOTHING).pseudo_labels(truth, torch.ones(2), torch.ones(2, dtype=torch.bool), torch.ones(2))
    assert perfect["weight_wrong"] is None
    nothing = Audit(truth, NOTHING).pseudo_labels(truth, torch.ones(2), torch.zeros(2, dtype=torch.bool), None)
    assert nothing["error_kept"] is None
    assert "weight_right" not in nothing
