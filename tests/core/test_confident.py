"""Wrong labels are found from probabilities, of images and of pixels by the same rule."""

import math

import pytest
import torch

from dmt.core import confident
from dmt.core.confident import Thresholds
from dmt.types import IGNORE


def sure_of(labels: list[int], confidence: list[float], classes: int = 3) -> torch.Tensor:
    """(N, C): so much on one class, the rest shared by the others."""
    rest = (1 - torch.tensor(confidence)) / (classes - 1)
    probabilities = rest.unsqueeze(1).repeat(1, classes)
    return probabilities.scatter(1, torch.tensor(labels).unsqueeze(1), torch.tensor(confidence).unsqueeze(1))


def bars(probabilities: torch.Tensor, given: torch.Tensor, classes: int = 3) -> torch.Tensor:
    thresholds = Thresholds(classes)
    thresholds.add(probabilities, given)
    return thresholds.values()


def test_thresholds_are_mean_self_confidences() -> None:
    given = torch.tensor([0, 0, 1, IGNORE])
    probabilities = sure_of([0, 0, 1, 2], [0.9, 0.5, 0.8, 0.99])
    values = bars(probabilities, given)
    assert values[:2].tolist() == pytest.approx([0.7, 0.8])
    assert math.isinf(values[2])  # no label names class 2, so nothing is ever suggested to be one


def test_judges_agree_with_the_labels_that_they_would_give_too() -> None:
    thresholds = Thresholds(3)
    assert math.isnan(thresholds.agreement)
    thresholds.add(sure_of([0, 0, 1, 2], [0.9, 0.9, 0.9, 0.9]), torch.tensor([0, 1, 1, IGNORE]))
    thresholds.add(sure_of([2], [0.9]), torch.tensor([2]))
    assert thresholds.agreement == pytest.approx(3 / 4)


def test_thresholds_add_up_in_parts() -> None:
    chance = torch.Generator().manual_seed(0)
    probabilities = torch.randn(40, 3, 4, 5, generator=chance).softmax(1)
    given = torch.randint(-1, 3, (40, 4, 5), generator=chance)
    parts = Thresholds(3)
    for start in range(0, 40, 7):
        parts.add(probabilities[start : start + 7], given[start : start + 7])
    torch.testing.assert_close(parts.values(), bars(probabilities, given))


def test_a_label_is_suspicious_where_a_sure_class_beats_it() -> None:
    given = torch.tensor([0, 0, 0, 0, 1, 1, 1])
    said = [0, 0, 1, 1, 1, 1, 1]
    probabilities = sure_of(said, [0.9, 0.9, 0.95, 0.5, 0.8, 0.8, 0.8])
    judgment = confident.judge(probabilities, given, torch.tensor([0.9, 0.8, 0.9]))
    # the third is surely a 1; the fourth may be a 1 too, but leads by 0.25 only
    assert judgment.suspicious.tolist() == [False, False, True, False, False, False, False]
    assert judgment.suggested[2:4].tolist() == [1, 1]
    assert judgment.margin[2].item() == pytest.approx(0.95 - 0.025)
    assert (judgment.suggested != given).all()


def test_a_class_that_leads_enough_goes_before_a_likelier_one_that_does_not() -> None:
    probabilities = torch.tensor([[0.1, 0.5, 0.4]])
    judgment = confident.judge(probabilities, torch.tensor([0]), torch.tensor([0.9, 0.9, 0.3]))  # leads of 0.6 and 0.2
    assert judgment.suggested.tolist() == [2]
    assert judgment.suspicious.tolist() == [True]


def test_sites_without_label_and_classes_that_no_net_saw_are_not_judged() -> None:
    probabilities = sure_of([1, 1, 1], [0.99, 0.99, 0.99])
    given = torch.tensor([IGNORE, 0, 2])
    known = torch.tensor([True, True, False])
    judgment = confident.judge(probabilities, given, torch.full((3,), 0.5), known)
    assert judgment.suspicious.tolist() == [False, True, False]
    assert judgment.margin[[0, 2]].tolist() == [0.0, 0.0]


def test_pixels_are_judged_as_images_are() -> None:
    chance = torch.Generator().manual_seed(1)
    probabilities = torch.randn(2, 4, 3, 5, generator=chance).mul(3).softmax(1)
    given = torch.randint(-1, 4, (2, 3, 5), generator=chance)
    thresholds = torch.full((4,), 0.4)
    whole = confident.judge(probabilities, given, thresholds)
    flat = confident.judge(probabilities.movedim(1, -1).reshape(-1, 4), given.reshape(-1), thresholds)
    assert torch.equal(whole.suspicious.reshape(-1), flat.suspicious)
    assert torch.equal(whole.suggested.reshape(-1), flat.suggested)
    assert whole.suspicious.any()


def test_flipped_labels_are_found() -> None:
    chance = torch.Generator().manual_seed(2)
    truth = torch.randint(0, 5, (500,), generator=chance)
    given = truth.clone()
    given[:50] = (truth[:50] + torch.randint(1, 5, (50,), generator=chance)) % 5
    logits = torch.randn(500, 5, generator=chance) + 4 * torch.nn.functional.one_hot(truth, 5)
    probabilities = logits.softmax(1)
    judgment = confident.judge(probabilities, given, bars(probabilities, given, 5))
    hits = int(judgment.suspicious[:50].sum())
    assert hits > 30
    assert hits / int(judgment.suspicious.sum()) > 0.9
    assert judgment.margin[:50].mean() > judgment.margin[50:].mean()


def test_a_summary_names_the_confusion_that_prevails() -> None:
    given = torch.zeros(2, 2, 3, dtype=torch.int64)
    given[0, 0, 0] = IGNORE
    probabilities = torch.zeros(2, 3, 2, 3)
    probabilities[:, 0] = 1.0
    probabilities[0, :, 1] = torch.tensor([[0.1, 0.0, 0.0], [0.2, 0.0, 0.0], [0.7, 1.0, 1.0]])  # class 2, thrice
    probabilities[0, :, 0, 1] = torch.tensor([0.0, 1.0, 0.0])  # class 1, once
    judgment = confident.judge(probabilities, given, torch.full((3,), 0.5))
    summary = confident.summarize(judgment, given, 3)
    assert (summary.given.tolist(), summary.suggested.tolist()) == ([0, IGNORE], [2, IGNORE])
    assert summary.share.tolist() == pytest.approx([4 / 5, 0.0])
    assert summary.score.tolist() == pytest.approx([(0.6 + 1 + 1 + 1) / 5, 0.0])
    assert summary.sites[0].nonzero().tolist() == [[1, 0], [1, 1], [1, 2]]


def test_of_one_label_a_summary_says_the_same_again() -> None:
    given = torch.tensor([0, 1])
    judgment = confident.judge(sure_of([1, 1], [0.9, 0.9]), given, torch.full((3,), 0.5))
    summary = confident.summarize(judgment, given, 3)
    assert summary.share.tolist() == [1.0, 0.0]
    assert torch.equal(summary.score, judgment.margin)
    assert torch.equal(summary.given, given)
