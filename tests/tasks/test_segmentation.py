import dataclasses
import functools
from pathlib import Path

import numpy as np
import pytest
import torch

from dmt.data import ragged
from dmt.data.pixels import published
from dmt.data.pixels.segment_options import SegmentOptions
from dmt.data.pixels.segment_sets import Parts, SegmentSet
from dmt.data.ragged import Ragged
from dmt.data.sets import LabeledSet
from dmt.errors import ConfigError, DataError
from dmt.tasks import opening, segmentation
from dmt.types import IGNORE

CPU = torch.device("cpu")


@pytest.fixture
def images(few_scenes: SegmentSet) -> Parts:
    return few_scenes.read(Path("nowhere"), print, lambda done, of: None)


@pytest.fixture
def options(few_scenes: SegmentSet) -> SegmentOptions:
    return SegmentOptions("scenes", "10", validation=7, crop=(32, 48))


@functools.cache
def named(ids: tuple[str, ...]) -> Parts:
    """Images of two pixels under these names; the test images are the same."""
    images = ragged.stack([np.full((1, 2, 3), number % 256, np.uint8) for number in range(len(ids))])
    masks = ragged.stack([np.zeros((1, 2), np.uint8)] * len(ids))
    whole = LabeledSet(ids, images, masks)
    return whole, whole


def test_splits_have_the_sizes_that_plans_count_with(images: Parts, options: SegmentOptions) -> None:
    task, audit = segmentation.split_up(options, images, seed=1)
    assert (len(task.labeled), len(task.unlabeled), len(task.validation), len(task.test)) == (10, 23, 7, 12)
    assert task.sizes(len(audit.everything)) == options.sizes
    parts = [task.labeled.ids, task.unlabeled.ids, task.validation.ids]
    assert set().union(*parts) == set(images[0].ids)
    assert sum(map(len, parts)) == 40
    assert not hasattr(task.unlabeled, "labels")


def test_the_audit_knows_the_masks_of_the_unlabeled(images: Parts, options: SegmentOptions) -> None:
    task, audit = segmentation.split_up(options, images, seed=1)
    train = images[0]
    for position in (0, 10, 22):
        there = train.ids.index(task.unlabeled.ids[position])
        mask = audit.mask(position)
        assert mask is not None
        assert torch.equal(mask, train.labels.image(there))
        assert torch.equal(task.unlabeled.images.image(position), train.images.image(there))


def test_labels_are_nested_by_number_and_differ_by_seed(images: Parts, options: SegmentOptions) -> None:
    few, many = (
        segmentation.split_up(dataclasses.replace(options, labels=count), images, seed=1)[0] for count in ("10", "20")
    )
    assert set(few.labeled.ids) < set(many.labeled.ids)
    other = segmentation.split_up(options, images, seed=2)[0]
    assert set(few.labeled.ids) != set(other.labeled.ids)
    assert len(set(few.validation.ids) & set(other.validation.ids)) >= 4  # nearly the same


@pytest.mark.parametrize(
    ("dataset", "labels", "which", "count"),
    [
        ("voc", "1/8", ("voc", "8"), 1322),
        ("voc", "1/20", ("voc", "20"), 530),
        ("voc-small", "1/20", ("voc", "20"), 530),
        ("voc-small", "1/50", ("voc", "50"), 211),
        ("voc", "1/106", ("voc", "106"), 100),
        ("voc", "train", ("voc", "sbd"), 1464),
        ("voc-small", "train", ("voc", "sbd"), 1464),
        ("cityscapes", "1/8", ("cityscapes", "8"), 371),
        ("cityscapes", "1/30", ("cityscapes", "30"), 100),
        ("voc", "20", None, 20),
        ("cityscapes", "8", None, 8),
    ],
)
def test_labels_name_a_published_list_or_a_number(
    dataset: str, labels: str, which: tuple[str, str] | None, count: int
) -> None:
    options = SegmentOptions(dataset, labels)
    assert options.published == which
    assert options.labeled == options.sizes.labeled == count
    assert options.sizes.unlabeled == options.sizes.everything - count - 100


@pytest.mark.parametrize(
    ("dataset", "labels", "says"),
    [
        ("voc", "1/30", "labels must be a number above 0 or 1/2, 1/4, 1/8, 1/20, 1/50, 1/106, train, not '1/30'"),
        ("cityscapes", "train", "1/8, 1/20, 1/30, not 'train'"),
        ("scenes", "1/8", "nothing else here, not '1/8'"),
        ("scenes", "0", "labels must be a number above 0"),
        ("scenes", "²", "labels must be a number above 0"),
        ("voc", "10482", "must leave some of the 10,582 training images unlabeled"),
    ],
)
def test_labels_that_name_nothing_are_refused(dataset: str, labels: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        SegmentOptions(dataset, labels)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"split": 3}, "split must be 0, 1, 2 or none, not 3"),
        ({"crop": (32,)}, "crop must be two whole numbers"),
        ({"crop": (32, 0)}, "is empty"),
        ({"scale": (1.5, 0.5)}, "no range"),
        ({"validation": -1}, "validation must be 0 or more"),
        ({"dataset": "voc-smal"}, "did you mean 'voc-small'?"),
    ],
)
def test_what_is_no_option_is_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        dataclasses.replace(SegmentOptions("voc"), **change)  # type: ignore[arg-type]
    assert says in str(caught.value)


@pytest.mark.parametrize(("seed", "split", "taken"), [(1, None, 0), (2, None, 1), (4, None, 0), (1, 2, 2), (3, 0, 0)])
def test_a_published_list_is_taken_by_seed_or_by_name(seed: int, split: int | None, taken: int) -> None:
    options = SegmentOptions("voc", "1/106", split=split)
    images = named(published.ids("voc_trainaug"))
    task, _ = segmentation.split_up(options, images, seed)
    assert task.labeled.ids == published.labeled_ids("voc", "106", taken)[0]
    assert len(task.validation) == 100
    assert not set(task.labeled.ids) & (set(task.validation.ids) | set(task.unlabeled.ids))
    assert len(task.unlabeled) == 10_582 - 200


def test_lists_that_do_not_fit_the_folder_are_data_errors(images: Parts, options: SegmentOptions) -> None:
    lost = set(published.labeled_ids("voc", "106", 0)[0][:3])
    there = tuple(each for each in published.ids("voc_trainaug") if each not in lost)
    with pytest.raises(DataError, match="names 3 images that are not here, first") as caught:
        segmentation.split_up(SegmentOptions("voc", "1/106"), named(there), seed=1)
    assert "--data" in str(caught.value)
    some = images[0].take(torch.arange(15)), images[1]
    with pytest.raises(DataError, match="only 5 images are left"):
        segmentation.split_up(options, some, seed=1)
    with pytest.raises(DataError, match="10 labels were requested, but there are only 10"):
        segmentation.split_up(options, (images[0].take(torch.arange(10)), images[1]), seed=1)


def test_views_are_all_images_once_at_their_own_size(images: Parts, options: SegmentOptions) -> None:
    task, _ = segmentation.split_up(options, images, seed=1)
    views = list(task.views(task.test, CPU))
    assert sorted(torch.cat([view.positions for view in views]).tolist()) == list(range(12))
    assert len({tuple(view.images.shape[2:]) for view in views}) > 1
    for view in views:
        height, width = view.images.shape[2:]
        assert height % 32 == width % 32 == 0
        assert view.truth is not None
        for row, position in enumerate(view.positions.tolist()):
            image, mask = task.test.images.image(position), task.test.labels.image(position)
            tall, wide = mask.shape
            assert 0 <= height - tall < 32
            assert 0 <= width - wide < 32
            torch.testing.assert_close(view.images[row, :, :tall, :wide], image.permute(2, 0, 1) / 255)
            assert torch.equal(view.truth[row, :tall, :wide], mask.long())
            assert int((view.truth[row] != IGNORE).sum()) == tall * wide  # padding is no truth


def test_views_of_unlabeled_images_have_no_truth(images: Parts, options: SegmentOptions) -> None:
    task, _ = segmentation.split_up(options, images, seed=1)
    views = list(task.views(task.unlabeled, CPU))
    assert all(view.truth is None for view in views)
    assert sorted(torch.cat([view.positions for view in views]).tolist()) == list(range(23))


def test_void_pixels_of_a_mask_are_ignored(images: Parts, options: SegmentOptions) -> None:
    train, test = images
    first = test.take(torch.tensor([0]))
    mask = first.labels.image(0).numpy().copy()
    mask[:5] = 255
    void = LabeledSet(first.ids, first.images, ragged.stack([mask]))
    task, _ = segmentation.split_up(options, (train, void), seed=1)
    (view,) = task.views(task.test, CPU)
    assert view.truth is not None
    assert bool((view.truth[0, :5] == IGNORE).all())
    assert int((view.truth != IGNORE).sum()) == (mask.shape[0] - 5) * mask.shape[1]


def test_a_net_must_fit_the_crop_and_the_classes(images: Parts, options: SegmentOptions) -> None:
    task, _ = segmentation.split_up(options, images, seed=1)
    spec = task.net_spec("fcn-4")
    assert (spec.shape, spec.classes, spec.pixels) == ((3, 32, 48), 11, True)
    assert spec == opening.net_spec(options, "fcn-4")
    assert opening.classes(options) == task.classes
    assert opening.palette(options) == task.colors
    assert isinstance(task.unlabeled.images, Ragged)
