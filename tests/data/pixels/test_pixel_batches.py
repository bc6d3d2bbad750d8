import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from dmt.core import codes, trees
from dmt.core.execution import Execution
from dmt.data import ragged
from dmt.data.pixels import color_views
from dmt.data.pixels.pixel_batches import PixelBatches, Unlabeled
from dmt.data.pixels.windows import Window
from dmt.data.ragged import Ragged
from dmt.data.sets import LabeledSet
from dmt.errors import DataError
from dmt.types import IGNORE, TRAIN, Batch, BatchPlan

PLAIN = Execution(torch.device("cpu"))
WINDOW = Window(24, 32)
SIZES = [(40, 50), (20, 31), (60, 33), (13, 80), (25, 25)]


def labeled_set(offset: int = 0) -> LabeledSet[Ragged]:
    """Image i is 10·(i + 1) gray; its mask is i + offset, without a label in the top half."""
    images, masks = [], []
    for number, size in enumerate(SIZES):
        images.append(np.full((*size, 3), 10 * (number + 1), np.uint8))
        masks.append(np.full(size, number + offset, np.uint8))
        masks[-1][: size[0] // 2] = 255
    return LabeledSet(tuple(map(str, range(len(SIZES)))), ragged.stack(images), ragged.stack(masks))


def confidence_of(number: int) -> float:
    return (number + 1) / 10


def unlabeled(stored: bool = True) -> Unlabeled:
    """As `labeled_set`, with labels from 5 on, and confidence 0.1·(i + 1)."""
    data = labeled_set(offset=5)
    if not stored:
        return Unlabeled(data.images)
    packed = [
        codes.pack(codes.encode(torch.full(size, confidence_of(number)).logit())) for number, size in enumerate(SIZES)
    ]
    return Unlabeled(data.images, data.labels, ragged.stack([plane.numpy() for plane in packed]))


def batches(
    sizes: tuple[int, int] = (2, 3), other: Unlabeled | None = None, resident: bool | None = None, seed: int = 7
) -> PixelBatches:
    plan = BatchPlan(*sizes, views=() if other is None else (TRAIN,), seed=seed)
    return PixelBatches(labeled_set(), plan, WINDOW, PLAIN, other, resident)


def made(source: PixelBatches, step: int) -> Batch:
    return source.make(source.draw(step))


def flat(batch: Batch) -> list[torch.Tensor]:
    target = [] if batch.pseudo is None else [batch.pseudo.labels, batch.pseudo.confidence]
    return [batch.images, batch.truth, *batch.views.values(), *target]


def same(one: Batch, other: Batch) -> bool:
    return len(flat(one)) == len(flat(other)) and all(map(torch.equal, flat(one), flat(other)))


def test_shapes_and_types() -> None:
    source = batches(other=unlabeled())
    assert source.shape == (2, 3, 24, 32)
    batch = made(source, 0)
    assert batch.pseudo is not None
    assert [(tuple(each.shape), each.dtype) for each in flat(batch)] == [
        ((2, 3, 24, 32), torch.float32),
        ((2, 24, 32), torch.int64),
        ((3, 3, 24, 32), torch.float32),
        ((3, 24, 32), torch.int64),
        ((3, 24, 32), torch.float32),
    ]


@pytest.mark.parametrize("resident", [True, False])
def test_without_unlabeled_images(resident: bool) -> None:
    source = batches(resident=resident)
    assert source.shape == (2, 0, 24, 32)
    batch = made(source, 0)
    assert not batch.views
    assert batch.pseudo is None


@pytest.mark.parametrize("resident", [True, False])
def test_unlabeled_images_without_a_store(resident: bool) -> None:
    batch = made(batches(other=unlabeled(stored=False), resident=resident), 0)
    assert batch.views["train"].shape == (3, 3, 24, 32)
    assert batch.pseudo is None


def test_the_view_has_the_name_that_was_asked_for() -> None:
    source = PixelBatches(labeled_set(), BatchPlan(1, 1, ("weak",)), WINDOW, PLAIN, unlabeled())
    assert list(made(source, 0).views) == ["weak"]


@pytest.mark.parametrize("resident", [True, False])
def test_images_labels_and_confidence_stay_together(resident: bool) -> None:
    source = batches(other=unlabeled(), resident=resident)
    for step in range(10):
        batch = made(source, step)
        assert batch.pseudo is not None
        for images, labels, offset in ((batch.images, batch.truth, 0), (batch.views["train"], batch.pseudo.labels, 5)):
            gray = (images[:, 0] * 255).round().long()  # (N, h, w): 10·(i + 1), 0 in padding
            kept = labels != IGNORE
            assert kept.any()
            assert torch.equal(gray[kept], 10 * (labels[kept] - offset + 1))
            assert (labels[gray == 0] == IGNORE).all()
            assert labels.max() < offset + len(SIZES)
        inside = batch.views["train"][:, 0] > 0
        expected = batch.views["train"][:, 0] * 255 / 100
        torch.testing.assert_close(batch.pseudo.confidence[inside], expected[inside], atol=1e-4, rtol=0)
        assert (batch.pseudo.confidence[~inside] == 0).all()
        # pixels that were not selected keep their confidence
        assert (batch.pseudo.confidence[inside & (batch.pseudo.labels == IGNORE)] > 0.05).all()


def test_both_residencies_make_the_same_batches() -> None:
    on_device, on_host = batches(other=unlabeled(), resident=True), batches(other=unlabeled(), resident=False)
    for step in range(5):
        assert same(made(on_device, step), made(on_host, step))


@pytest.mark.parametrize("resident", [True, False])
def test_any_step_in_any_order_gives_the_same_batch(resident: bool) -> None:
    forward, backward = (batches(other=unlabeled(), resident=resident) for _ in range(2))
    ahead = [made(forward, step) for step in range(6)]
    back = [made(backward, step) for step in reversed(range(6))][::-1]
    assert all(map(same, ahead, back))
    assert not same(ahead[0], ahead[1])
    assert not same(ahead[0], made(batches(other=unlabeled(), seed=8), 0))


def test_a_step_may_be_larger_than_the_set() -> None:
    batch = made(batches((12, 7), unlabeled()), 3)
    assert batch.images.shape[0] == 12
    gray = (batch.images[:, 0].amax((1, 2)) * 255).round().long()
    counts = gray.bincount()[10::10]
    assert counts.sum() == 12
    assert counts.min() >= 1  # two whole passes lie within, less where they begin


def test_a_draw_is_a_tree_and_making_leaves_it_alone() -> None:
    for resident in (True, False):
        source = batches(other=unlabeled(), resident=resident)
        drawn = source.draw(2)
        copy = trees.clone(drawn)
        first = source.make(drawn)
        assert all(map(torch.equal, trees.tensors(drawn), trees.tensors(copy)))
        assert same(source.make(copy), first)


def test_making_reads_nothing_back() -> None:
    source = batches(other=unlabeled(), resident=True)
    drawn = source.draw(0)
    with FakeTensorMode(allow_non_fake_inputs=True):  # tensors without values: code that asks for one fails
        batch = source.make(drawn)
    assert batch.views["train"].shape == (3, 3, 24, 32)


def test_subsets_of_a_buffer_are_used_as_they_are() -> None:
    data = labeled_set()
    positions = torch.tensor([3, 1])
    taken = PixelBatches(data.take(positions), BatchPlan(2), WINDOW, PLAIN)
    batch = made(taken, 0)
    gray = {round(float(image.max()) * 255) for image in batch.images}
    assert gray == {20, 40}


def test_planes_of_another_size_are_refused() -> None:
    data = labeled_set()
    mixed = LabeledSet(data.ids, data.images, data.labels[torch.tensor([1, 0, 2, 3, 4])])
    with pytest.raises(DataError, match="size"):
        PixelBatches(mixed, BatchPlan(2), WINDOW, PLAIN)


STRONG = ("weak", "strong", "strong2")


def strong(resident: bool, stored: bool = False) -> PixelBatches:
    return PixelBatches(labeled_set(), BatchPlan(2, 3, STRONG, seed=7), WINDOW, PLAIN, unlabeled(stored), resident)


@pytest.mark.parametrize("resident", [True, False])
def test_strong_views_have_other_colors_and_the_same_geometry(resident: bool) -> None:
    source = strong(resident)
    drawn = source.draw(1)
    batch = source.make(drawn)
    assert tuple(batch.views) == STRONG
    assert len(drawn.colors) == 2
    for name, colors in zip(STRONG[1:], drawn.colors, strict=True):
        assert torch.equal(batch.views[name], color_views.apply(batch.views["weak"], colors))
    assert not torch.equal(batch.views["strong"], batch.views["strong2"])
    assert not torch.equal(batch.views["strong"], batch.views["weak"])


def test_both_residencies_make_the_same_strong_views() -> None:
    on_device, on_host = strong(resident=True), strong(resident=False)
    for step in range(4):
        one, other = made(on_device, step), made(on_host, step)
        assert same(one, other)
        assert one.positions is not None
        assert other.positions is not None
        assert torch.equal(one.positions, other.positions)
        assert one.valid is not None
        assert other.valid is not None
        assert torch.equal(one.valid, other.valid)


@pytest.mark.parametrize("resident", [True, False])
def test_padding_and_only_padding_is_not_valid(resident: bool) -> None:
    source, padded = strong(resident), 0
    for step in range(6):
        batch = made(source, step)
        assert batch.valid is not None
        assert batch.positions is not None
        assert batch.valid.dtype == torch.bool
        gray = (batch.views["weak"][:, 0] * 255).round().long()  # 10·(i + 1), 0 in padding
        assert torch.equal(batch.valid, gray > 0)
        assert torch.equal(gray.amax((1, 2)), 10 * (batch.positions + 1))
        padded += int((~batch.valid).sum())
    assert padded


def test_stored_labels_say_themselves_what_is_padding() -> None:
    batch = made(strong(resident=True, stored=True), 0)
    assert batch.valid is None
    assert batch.pseudo is not None
    assert (batch.pseudo.labels[batch.views["weak"][:, 0] == 0] == IGNORE).all()


def test_colors_change_nothing_else() -> None:
    """The windows are those of a stage without strong views."""
    plain = PixelBatches(labeled_set(), BatchPlan(2, 3, ("weak",), seed=7), WINDOW, PLAIN, unlabeled(stored=False))
    for step in range(3):
        one, other = made(plain, step), made(strong(resident=True), step)
        assert torch.equal(one.views["weak"], other.views["weak"])
        assert torch.equal(one.images, other.images)


def test_making_strong_views_reads_nothing_back() -> None:
    source = strong(resident=True)
    drawn = source.draw(0)
    with FakeTensorMode(allow_non_fake_inputs=True):
        batch = source.make(drawn)
    assert batch.views["strong"].shape == (3, 3, 24, 32)


def test_labels_need_their_confidence() -> None:
    data = labeled_set()
    with pytest.raises(ValueError, match="confidence"):
        Unlabeled(data.images, data.labels)
