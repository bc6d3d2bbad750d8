from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from dmt.core.weighting import AGREE, CASES, NEGATIVE, POSITIVE
from dmt.data.audits import Weigh, Weighed
from dmt.data.images.audit import ImageAudit
from dmt.data.sets import LabeledSet, PseudoLabels

CPU = torch.device("cpu")
NOTHING = LabeledSet((), torch.zeros(0, 1, 1, 1, dtype=torch.uint8), torch.zeros(0, dtype=torch.int64))


def weighing(learned: Tensor, weights: Tensor, cases: Tensor | None = None) -> Weigh:
    """A student that learns these labels with these weights."""

    def weigh(chosen: Tensor | None) -> Iterator[Weighed]:
        assert chosen is None
        for positions in (torch.tensor([0, 1]), torch.arange(2, len(weights))):
            yield Weighed(
                positions, learned[positions], weights[positions], None if cases is None else cases[positions]
            )

    return weigh


def test_errors_of_the_most_confident_and_of_the_kept() -> None:
    truth = torch.tensor([0, 1, 2, 3, 4])
    labels = torch.tensor([0, 1, 2, 9, 9])  # the two least confident are wrong
    confidence = torch.tensor([0.9, 0.8, 0.7, 0.6, 0.5])
    selected = torch.tensor([True, True, True, True, False])
    weigh = weighing(labels, torch.tensor([1.0, 1.0, 0.5, 0.5, 0.0]))
    numbers = ImageAudit(truth, NOTHING, 10).pseudo_labels(PseudoLabels(labels, confidence, selected), weigh, CPU, {})
    assert numbers["error_top"] == pytest.approx({"20%": 0, "40%": 0, "60%": 0, "80%": 25, "100%": 40})
    assert numbers["error_top_weighted"] == pytest.approx({"20%": 0, "40%": 0, "60%": 0, "80%": 50 / 3, "100%": 50 / 3})
    assert numbers["error_kept"] == numbers["error_kept_all"] == pytest.approx(25.0)
    assert numbers["images"] == numbers["images_all"] == 5
    assert numbers["coverage"] == 0.8
    assert numbers["by_class"]["coverage"] == [1, 1, 1, *6 * [None], 0.5]
    assert numbers["by_class"]["kept"] == [1, 1, 1, 0, 0, 0, 0, 0, 0, 1]
    assert numbers["by_class"]["error_kept"] == [0, 0, 0, *6 * [None], 100]
    assert numbers["error_kept_weighted"] == pytest.approx(100 * 0.5 / 3)
    assert numbers["weight_right"] == pytest.approx(2.5 / 3)
    assert numbers["weight_wrong"] == pytest.approx(0.5)


def test_flipped_labels_are_judged_as_they_are_learned() -> None:
    """Where the student is surer, DMT-Flip learns the student's label: right where the teacher's was wrong, or not."""
    truth, teacher = torch.tensor([0, 1, 2, 3]), torch.tensor([0, 9, 2, 9])
    learned = torch.tensor([0, 1, 8, 9])  # the second is mended, the third spoiled
    labels = PseudoLabels(teacher, torch.tensor([0.9, 0.8, 0.7, 0.6]), torch.ones(4, dtype=torch.bool))
    cases = torch.tensor([AGREE, POSITIVE, POSITIVE, NEGATIVE])
    weigh = weighing(learned, torch.tensor([1.0, 0.5, 0.25, 0.125]), cases)
    numbers = ImageAudit(truth, NOTHING, 10).pseudo_labels(labels, weigh, CPU, {})
    assert numbers["error_kept"] == pytest.approx(50)
    assert numbers["error_kept_weighted"] == pytest.approx(100 * 0.375 / 1.875)
    assert numbers["error_top_weighted"]["60%"] == pytest.approx(0)  # of the first two
    assert numbers["weight_right"] == pytest.approx(0.75)
    assert numbers["weight_wrong"] == pytest.approx(0.1875)
    assert [numbers[name] for name in CASES] == [0.25, 0.25, 0.5]
    assert numbers["by_class"]["error_kept"][9] == 100  # as the teacher called them
    assert numbers["by_class"]["error_kept_weighted"][8] == 100  # as the student learned them
    assert numbers["by_class"]["positive"] == [0, None, 1, *6 * [None], 0.5]


def test_what_cannot_be_counted_is_none() -> None:
    truth = torch.tensor([0, 1])
    audit, weigh = ImageAudit(truth, NOTHING, 10), weighing(truth, torch.ones(2))
    perfect = audit.pseudo_labels(PseudoLabels(truth, torch.ones(2), torch.ones(2, dtype=torch.bool)), weigh, CPU, {})
    assert perfect["weight_wrong"] is None
    nothing = audit.pseudo_labels(PseudoLabels(truth, torch.ones(2), torch.zeros(2, dtype=torch.bool)), None, CPU, {})
    assert nothing["error_kept"] is None
    assert "weight_right" not in nothing


def test_without_truth_only_the_weights_are_known() -> None:
    labels = PseudoLabels(torch.tensor([0, 1]), torch.ones(2), torch.tensor([True, False]))
    audit = ImageAudit(None, NOTHING, 10)
    assert audit.pseudo_labels(labels, None, CPU, {}) == {}
    weigh = weighing(labels.labels, torch.tensor([0.25, 1.0]))
    assert audit.pseudo_labels(labels, weigh, CPU, {}) == {"weight_kept": 0.25}
