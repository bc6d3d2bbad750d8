"""Views that a frozen encoder looks at once, and batches of their features."""

import numpy as np
import pytest
import torch

from dmt.core.execution import Execution
from dmt.data.images import stored_views
from dmt.data.images.batches import Unlabeled
from dmt.data.images.feature_batches import FeatureBatches
from dmt.data.sets import LabeledSet
from dmt.types import BatchPlan, Target

PLAIN = Execution(torch.device("cpu"))


def photos(count: int = 3, side: int = 16) -> torch.Tensor:
    return torch.randint(0, 256, (count, 3, side, side + 4), dtype=torch.uint8, generator=torch.manual_seed(0))


def test_the_first_views_are_the_image_and_its_mirror_image() -> None:
    images, ids = photos(), ("a", "b", "c")
    plain, mirrored = (stored_views.make(images, ids, view) for view in (0, 1))
    torch.testing.assert_close(plain, images.float() / 255)
    torch.testing.assert_close(mirrored, plain.flip(-1))


def test_a_crop_depends_on_the_image_and_the_view_alone() -> None:
    images, ids = photos(), ("a", "b", "c")
    all_at_once = stored_views.make(images, ids, 3)
    alone = stored_views.make(images[1:2], ids[1:2], 3)
    assert all_at_once.shape == images.shape
    torch.testing.assert_close(all_at_once[1:2], alone)
    assert not torch.equal(alone, stored_views.make(images[1:2], ids[1:2], 4))
    assert not torch.equal(stored_views.make(images[1:2], ("d",), 3), alone)


def test_a_crop_is_a_part_of_the_image() -> None:
    """Of a horizontal ramp, a crop keeps the order of columns, or turns it around; and never shows all of it twice."""
    ramp = torch.arange(0, 240, 12, dtype=torch.uint8).expand(1, 3, 16, 20)
    for view in range(2, 12):
        row = stored_views.make(ramp, ("a",), view)[0, 0, 8]
        steps = row.diff()
        assert bool((steps >= -1e-6).all()) or bool((steps <= 1e-6).all())
        assert float(row.max() - row.min()) <= 228 / 255 + 1e-6


def features(count: int, views: int) -> torch.Tensor:
    """Feature of image i and view v: (i, v)."""
    places = torch.stack(torch.meshgrid(torch.arange(count), torch.arange(views), indexing="ij"), -1)
    return places.to(torch.float16)


def batches(views: tuple[str, ...], stored: int = 4, taught: bool = False) -> FeatureBatches:
    labeled = LabeledSet(tuple("abcdef"), features(6, stored), torch.arange(6) % 3)
    positions = torch.tensor([1, 4, 7])
    target = Target(torch.tensor([2, 0, 1]), torch.tensor([0.9, 0.8, 0.7]))
    unlabeled = Unlabeled(features(9, stored), (positions, target) if taught else None) if views else None
    return FeatureBatches(labeled, BatchPlan(4, 3, views, seed=5), PLAIN, unlabeled)


def test_every_step_takes_a_stored_view_of_each_image() -> None:
    source = batches(("train",), taught=True)
    seen = set()
    for step in range(30):
        batch = source.make(source.draw(step))
        assert batch.images.dtype == torch.float32
        assert torch.equal(batch.images[:, 0].long() % 3, batch.truth)
        assert batch.pseudo is not None
        assert batch.positions is not None
        assert torch.equal(batch.views["train"][:, 0].long(), batch.positions)
        given = {1: 2, 4: 0, 7: 1}
        assert batch.pseudo.labels.tolist() == [given[int(each)] for each in batch.positions]
        seen |= set(batch.views["train"][:, 1].int().tolist())
    assert seen == {0, 1, 2, 3}
    assert torch.equal(source.make(source.draw(7)).images, source.make(source.draw(7)).images)


@pytest.mark.parametrize(("stored", "weak", "strong"), [(4, {0, 1}, {2, 3}), (2, {0, 1}, {0, 1}), (1, {0}, {0})])
def test_weak_views_are_gentle_and_strong_ones_are_crops(stored: int, weak: set[int], strong: set[int]) -> None:
    source = batches(("weak", "strong"), stored)
    made = [source.make(source.draw(step)).views for step in range(40)]
    for kind, expected in (("weak", weak), ("strong", strong)):
        assert {int(each) for views in made for each in views[kind][:, 1]} == expected
    for views in made:
        assert np.array_equal(views["weak"][:, 0], views["strong"][:, 0])
