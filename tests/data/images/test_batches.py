import numpy as np
import pytest
import torch
from torch import Tensor

from dmt.core.execution import Execution
from dmt.data.images.augment import POLICIES
from dmt.data.images.batches import ImageBatches, Order, Unlabeled, scale
from dmt.data.sets import LabeledSet
from dmt.types import TRAIN, BatchPlan, Target

PLAIN = Execution(torch.device("cpu"))


@pytest.mark.parametrize(("count", "size"), [(10, 3), (10, 10), (10, 25), (1, 4), (9158, 448)])
def test_order_is_one_row_of_permutations(count: int, size: int) -> None:
    order = Order(count, size, 1, "test")
    steps = -(-count * 3 // size)
    row = np.concatenate([order(step) for step in range(steps)])
    assert all(len(order(step)) == size for step in range(3))
    for start in range(0, len(row) - count + 1, count):
        assert sorted(row[start : start + count]) == list(range(count))


def test_any_step_can_be_asked_for() -> None:
    forward, backward = Order(50, 7, 2, "x"), Order(50, 7, 2, "x")
    ahead = [forward(step).tolist() for step in range(30)]
    assert [backward(step).tolist() for step in reversed(range(30))][::-1] == ahead
    assert Order(50, 7, 3, "x")(0).tolist() != ahead[0]


def labeled_set(count: int) -> LabeledSet[Tensor]:
    images = torch.arange(count, dtype=torch.uint8).view(-1, 1, 1, 1).expand(count, 1, 2, 2).contiguous()
    return LabeledSet(tuple(map(str, range(count))), images, torch.arange(count))


def test_images_labels_and_confidence_stay_together() -> None:
    data = labeled_set(20)
    target = Target(torch.arange(100, 130), torch.arange(30) / 30)
    unlabeled = torch.arange(200, 230, dtype=torch.uint8).view(-1, 1, 1, 1).expand(30, 1, 2, 2)
    pseudo = Unlabeled(unlabeled, (torch.arange(30), target))
    batches = ImageBatches(data, BatchPlan(4, 12, (TRAIN,), seed=7), {TRAIN: POLICIES["none"]}, PLAIN, pseudo)
    assert batches.shape == (4, 12, 2, 2)
    for step in range(8):
        batch = batches.make(batches.draw(step))
        assert batch.images.shape == (4, 1, 2, 2)
        assert batch.views["train"].shape == (12, 1, 2, 2)
        assert batch.pseudo is not None
        assert torch.equal((batch.images[:, 0, 0, 0] * 255).round().long(), batch.truth)
        assert torch.equal((batch.views["train"][:, 0, 0, 0] * 255).round().long() - 200, batch.pseudo.labels - 100)
        torch.testing.assert_close(batch.pseudo.confidence, (batch.pseudo.labels - 100) / 30)


def test_a_step_is_the_same_whatever_came_before() -> None:
    def fresh() -> ImageBatches:
        return ImageBatches(labeled_set(20), BatchPlan(8, seed=7), {TRAIN: POLICIES["crop-flip"]}, PLAIN)

    def images(batches: ImageBatches, step: int) -> torch.Tensor:
        return batches.make(batches.draw(step)).images

    first, later = fresh(), fresh()
    for step in range(5):
        later.draw(step)
    assert torch.equal(images(first, 5), images(later, 5))
    assert not torch.equal(images(first, 5), images(first, 6))


def test_scale_reaches_zero_and_one() -> None:
    assert scale(torch.tensor([0, 255], dtype=torch.uint8)).tolist() == [0.0, 1.0]
