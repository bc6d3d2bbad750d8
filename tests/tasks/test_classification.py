from pathlib import Path

import pytest
import torch
from torch import Tensor

from dmt.data.images.datasets import DATASETS
from dmt.data.images.options import DataOptions
from dmt.data.sets import LabeledSet
from dmt.errors import DataError
from dmt.tasks import classification

OPTIONS = DataOptions("digits", labels=100, validation=200, augment="shift")


@pytest.fixture(scope="module")
def images() -> tuple[LabeledSet[Tensor], LabeledSet[Tensor]]:
    return DATASETS["digits"].read(Path("nowhere"), print)


def test_splits_have_the_sizes_that_plans_count_with(images: tuple[LabeledSet[Tensor], LabeledSet[Tensor]]) -> None:
    task, audit = classification.split_up(OPTIONS, images, seed=1)
    sizes = OPTIONS.sizes
    assert (len(task.labeled), len(task.unlabeled), len(audit.everything)) == (
        sizes.labeled,
        sizes.unlabeled,
        sizes.everything,
    )
    parts = [task.labeled.ids, task.unlabeled.ids, task.validation.ids, task.test.ids]
    assert len(set().union(*parts)) == sum(map(len, parts)) == 1797


def test_views_are_all_images_in_order(images: tuple[LabeledSet[Tensor], LabeledSet[Tensor]]) -> None:
    task, _ = classification.split_up(OPTIONS, images, seed=1)
    views = list(task.views(task.unlabeled, torch.device("cpu")))
    assert [len(view.images) for view in views] == [500, 500, 97]
    assert torch.cat([view.positions for view in views]).tolist() == list(range(1097))
    torch.testing.assert_close(torch.cat([view.images for view in views]), task.unlabeled.images[:] / 255)
    assert all(view.truth is None for view in views)


def test_views_of_labeled_images_bring_their_truth(images: tuple[LabeledSet[Tensor], LabeledSet[Tensor]]) -> None:
    task, _ = classification.split_up(OPTIONS, images, seed=1)
    (view,) = task.views(task.test, torch.device("cpu"))
    assert view.truth is not None
    assert torch.equal(view.truth, task.test.labels)


def test_images_of_another_shape_are_refused(images: tuple[LabeledSet[Tensor], LabeledSet[Tensor]]) -> None:
    train, test = images
    wrong = LabeledSet(train.ids, train.images.repeat(1, 3, 1, 1), train.labels)
    with pytest.raises(DataError, match="right folder"):
        classification.split_up(OPTIONS, (wrong, test), seed=1)


@pytest.mark.parametrize(
    ("size", "cpu", "cuda"), [((8, 8), 500, 500), ((32, 32), 500, 500), ((128, 128), 32, 500), ((224, 224), 10, 334),
                              ((5000, 5000), 1, 1)]
)  # fmt: skip
def test_large_images_are_seen_in_smaller_batches(size: tuple[int, int], cpu: int, cuda: int) -> None:
    assert classification.images_per_forward(size, torch.device("cpu")) == cpu
    assert classification.images_per_forward(size, torch.device("cuda")) == cuda
