import numpy as np
import pytest
import torch
from torch import Tensor

from dmt.core.execution import Execution
from dmt.data.images.augment import POLICIES
from dmt.data.images.batches import ImageBatches, Order, Unlabeled, kind_of, scale
from dmt.data.sets import LabeledSet
from dmt.types import TRAIN, Batch, BatchPlan, Target

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


class Brighter:
    """Every image a little brighter, by a draw of its own; ``base`` tells policies apart."""

    mirrors = False

    def __init__(self, base: int) -> None:
        self.base = base

    def draw(self, count: int, generator: torch.Generator, device: torch.device) -> Tensor:
        return self.base + torch.randint(0, 16, (count,), generator=generator, dtype=torch.uint8)

    def apply(self, images: Tensor, draws: Tensor) -> Tensor:
        return images + draws[:, None, None, None]


BRIGHTER = {"weak": Brighter(100), "strong": Brighter(180)}
VIEWS = ("weak", "weak2", "strong")


def viewed(labeled_view: str = "weak", seed: int = 7, taught: Tensor | None = None) -> ImageBatches:
    """Labeled image i has gray level i, unlabeled image i has 20 + i."""
    images = torch.arange(20, 50, dtype=torch.uint8).view(-1, 1, 1, 1).expand(30, 1, 2, 2)
    stored = None if taught is None else (taught, Target(taught + 1000, taught / 30))
    plan = BatchPlan(4, 12, VIEWS, labeled_view, seed)
    policies = BRIGHTER | {TRAIN: POLICIES["none"]}
    return ImageBatches(labeled_set(20), plan, policies, PLAIN, Unlabeled(images, stored))


def level(images: Tensor) -> Tensor:
    return (images[:, 0, 0, 0] * 255).round().long()


def made(batches: ImageBatches, step: int) -> Batch:
    return batches.make(batches.draw(step))


def test_every_view_shows_the_same_images_by_draws_of_its_own() -> None:
    batches = viewed()
    assert batches.kinds == ("weak", "strong")
    seen: set[int] = set()
    for step in range(5):
        batch = made(batches, step)
        assert batch.positions is not None
        assert tuple(batch.views) == VIEWS
        added = {name: level(view) - 20 - batch.positions for name, view in batch.views.items()}
        for name, base in (("weak", 100), ("weak2", 100), ("strong", 180)):
            assert ((added[name] >= base) & (added[name] < base + 16)).all()
        assert not torch.equal(added["weak"], added["weak2"])
        assert not torch.equal(added["weak"] - 100, added["strong"] - 180)
        seen |= set(batch.positions.tolist())
        known = level(batch.images) - batch.truth  # labeled images are seen in the weak policy, by other draws
        assert ((known >= 100) & (known < 116)).all()
    assert seen == set(range(30))


def test_labeled_images_may_have_a_kind_of_their_own() -> None:
    batches = viewed(labeled_view=TRAIN)
    assert batches.kinds == ("weak", "strong", TRAIN)
    batch = made(batches, 3)
    assert torch.equal(level(batch.images), batch.truth)


def test_views_of_a_step_are_drawn_alike_again() -> None:
    one, again, other = made(viewed(), 3), made(viewed(), 3), made(viewed(seed=8), 3)
    for name in VIEWS:
        assert torch.equal(one.views[name], again.views[name])
        assert not torch.equal(one.views[name], other.views[name])
    assert torch.equal(one.images, again.images)


def test_positions_are_those_among_all_unlabeled_images() -> None:
    taught = torch.arange(0, 30, 2)
    batch = made(viewed(taught=taught), 1)
    assert batch.positions is not None
    assert batch.pseudo is not None
    assert torch.equal(batch.pseudo.labels, batch.positions + 1000)
    assert set(batch.positions.tolist()) <= set(taught.tolist())
    assert (level(batch.views["weak"]) - 20 - batch.positions < 116).all()


def test_labels_alone_need_no_policy_but_their_own() -> None:
    batches = ImageBatches(labeled_set(20), BatchPlan(4, 0, labeled_view="weak"), BRIGHTER, PLAIN)
    batch = made(batches, 0)
    assert batches.shape == (4, 0, 2, 2)
    assert batches.kinds == ("weak",)
    assert not batch.views
    assert batch.positions is None
    assert (level(batch.images) - batch.truth >= 100).all()


def test_the_kind_of_a_view_is_its_name_without_digits() -> None:
    assert list(map(kind_of, ("weak", "weak2", "strong12"))) == ["weak", "weak", "strong"]


def test_scale_reaches_zero_and_one() -> None:
    assert scale(torch.tensor([0, 255], dtype=torch.uint8)).tolist() == [0.0, 1.0]
