import pytest
import torch

from dmt.core import recall, weighting
from dmt.core.weighting import AGREE, NEGATIVE, POSITIVE, Opinion
from dmt.types import Target


def opinion(labels: list[int], confidence: list[float], probability: list[float]) -> Opinion:
    return Opinion(
        torch.tensor(labels), torch.tensor(confidence), torch.tensor(probability), torch.zeros(len(labels)).long()
    )


def told(memory: dict[str, torch.Tensor], positions: list[int], view: Opinion, step: int) -> dict[str, torch.Tensor]:
    return recall.updated(memory, torch.tensor(positions), view, torch.tensor(step))


def test_who_was_never_asked_comes_first_then_who_was_for_longest_not() -> None:
    memory = recall.empty(6)
    memory = told(memory, [2, 0], opinion([1, 1], [0.5, 0.5], [0.5, 0.5]), step=0)
    memory = told(memory, [4], opinion([1], [0.5], [0.5]), step=3)
    positions = torch.tensor([4, 0, 5, 2, 1])
    assert recall.longest_ago(memory, positions, 5).tolist() == [2, 4, 1, 3, 0]
    assert recall.longest_ago(memory, positions, 2).tolist() == [2, 4]


def test_of_an_image_nobody_asked_about_the_student_thinks_as_its_teacher() -> None:
    target = Target(torch.tensor([2, 0]), torch.tensor([0.9, 0.4]))
    found = recall.recall(recall.empty(5), torch.tensor([3, 1]), target)
    assert torch.equal(found.labels, target.labels)
    assert torch.equal(found.confidence, target.confidence)
    assert torch.equal(found.probability, target.confidence)
    assert found.cases.tolist() == [AGREE, AGREE]


def test_cases_follow_from_what_is_remembered() -> None:
    memory = told(recall.empty(4), [0, 1, 3], opinion([1, 1, 1], [0.9, 0.9, 0.5], [0.9, 0.05, 0.3]), step=7)
    target = Target(torch.tensor([1, 0, 0]), torch.tensor([0.6, 0.6, 0.6]))
    found = recall.recall(memory, torch.tensor([0, 1, 3]), target)
    assert found.cases.tolist() == [AGREE, POSITIVE, NEGATIVE]
    weights = weighting.judge("dynamic", found, target, 1.0)[1]
    torch.testing.assert_close(weights, torch.tensor([0.9, 0.0, 0.3]))


def test_the_last_opinion_of_an_image_counts_and_others_stay() -> None:
    before = told(recall.empty(3), [0], opinion([2], [0.7], [0.1]), step=1)
    after = told(before, [1, 2, 1], opinion([0, 1, 2], [0.3, 0.4, 0.5], [0.2, 0.3, 0.4]), step=2)
    assert after["labels"].tolist() == [2, 2, 1]
    assert after["confidence"].tolist() == pytest.approx([0.7, 0.5, 0.4])
    assert after["probability"].tolist() == pytest.approx([0.1, 0.4, 0.3])
    assert after["asked"].tolist() == [1, 2, 2]
    assert before["asked"].tolist() == [1, -1, -1]
