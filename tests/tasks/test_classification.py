from pathlib import Path

import pytest
import torch

from dmt.data.datasets import DATASETS
from dmt.data.options import DataOptions
from dmt.data.sets import LabeledSet
from dmt.errors import DataError
from dmt.tasks import classification

OPTIONS = DataOptions("digits", labels=100, validation=200, augment="shift")


@pytest.fixture(scope="module")
def images() -> tuple[LabeledSet, LabeledSet]:
    return DATASETS["digits"].read(Path("nowhere"), print)


def test_splits_have_the_sizes_that_plans_count_with(images: tuple[LabeledSet, LabeledSet]) -> None:
    task, audit = classification.split_up(OPTIONS, images, seed=1)
    sizes = OPTIONS.sizes
    assert (len(task.labeled), len(task.unlabeled), len(audit.everything)) == (
        sizes.labeled,
        sizes.unlabeled,
        sizes.everything,
    )
    parts = [task.labeled.ids, task.unlabeled.ids, task.validation.ids, task.test.ids]
    assert len(set().union(*parts)) == sum(map(len, parts)) == 1797


def test_views_are_all_images_in_order(images: tuple[LabeledSet, LabeledSet]) -> None:
    task, _ = classification.split_up(OPTIONS, images, seed=1)
    parts = list(task.views(task.unlabeled, torch.device("cpu"), size=300))
    assert [len(view) for _, view in parts] == [300, 300, 300, 197]
    whole = torch.cat([view for _, view in parts])
    torch.testing.assert_close(whole, task.unlabeled.images / 255)


def test_images_of_another_shape_are_refused(images: tuple[LabeledSet, LabeledSet]) -> None:
    train, test = images
    wrong = LabeledSet(train.ids, train.images.repeat(1, 3, 1, 1), train.labels)
    with pytest.raises(DataError, match="right folder"):
        classification.split_up(OPTIONS, (wrong, test), seed=1)
