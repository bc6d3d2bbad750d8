import numpy as np
import pytest
import torch

from dmt.data import ragged
from dmt.data.pixels import size_groups
from dmt.data.pixels.size_groups import Group
from dmt.types import IGNORE

CPU = torch.device("cpu")


def some_sizes(count: int = 300) -> list[tuple[int, int]]:
    numbers = np.random.default_rng(0)
    return [(1, 1), (3, 4000), *map(tuple, numbers.integers(1, 400, (count, 2)).tolist())]


@pytest.mark.parametrize(("multiple", "pixels"), [(32, 4_000_000), (32, 100_000), (8, 1), (1, 50_000)])
def test_every_image_is_in_one_group_that_fits_it(multiple: int, pixels: int) -> None:
    sizes = some_sizes()
    found = size_groups.groups(sizes, multiple, pixels)
    assert sorted(position for group in found for position in group.positions) == list(range(len(sizes)))
    for group in found:
        assert group.positions
        assert len(group.positions) * group.height * group.width <= pixels or len(group.positions) == 1
        for position in group.positions:
            height, width = sizes[position]
            for side, padded in ((height, group.height), (width, group.width)):
                assert padded % multiple == 0
                assert 0 <= padded - side < multiple
    assert size_groups.groups(sizes, multiple, pixels) == found


def test_images_of_one_padded_size_share_a_batch() -> None:
    found = size_groups.groups([(30, 60), (90, 90), (32, 64), (1, 33), (32, 65)], pixels=2 * 32 * 64)
    assert found == [
        Group([1], 96, 96),  # larger than a batch may be, so alone
        Group([4], 32, 96),
        Group([0, 2], 32, 64),
        Group([3], 32, 64),
    ]


def test_no_images_make_no_groups() -> None:
    assert size_groups.groups([]) == []


def test_gathered_images_are_whole_and_padded() -> None:
    numbers = np.random.default_rng(0)
    sizes = [(1, 1), (3, 700), (20, 30), (31, 17), (20, 30)]
    planes = [numbers.integers(1, 255, (*size, 3), dtype=np.uint8) for size in sizes]
    images, masks = ragged.stack(planes), ragged.stack([np.ascontiguousarray(plane[..., 0]) for plane in planes])
    found = size_groups.groups(sizes)
    assert [len(group.positions) for group in found] == [1, 4]
    for group in found:
        views = size_groups.gather(images, group, CPU)
        labels = size_groups.gather_plane(masks, group, CPU)
        assert views.shape == (len(group.positions), 3, group.height, group.width)
        assert views.dtype == torch.float32
        assert labels.dtype == torch.uint8
        for view, label, position in zip(views, labels, group.positions, strict=True):
            height, width = sizes[position]
            plane = torch.from_numpy(planes[position])
            assert torch.equal(view[:, :height, :width], plane.permute(2, 0, 1) / 255)
            assert torch.equal(label[:height, :width], plane[..., 0])
            assert (view > 0).sum() == 3 * height * width
            assert (label == 255).sum() == group.height * group.width - height * width


def test_padding_is_what_was_asked_for() -> None:
    images = ragged.stack([np.zeros((1, 1, 3), np.uint8)])
    group = Group([0], 2, 2)
    assert size_groups.gather(images, group, CPU, fill=255).sum() == 3 * 3
    assert size_groups.gather_plane(ragged.stack([np.zeros((1, 1), np.uint8)]), group, CPU, fill=9).sum() == 3 * 9


def test_a_subset_is_gathered_by_its_own_positions() -> None:
    planes = [np.full((2, 2), value, np.uint8) for value in range(5)]
    taken = ragged.stack(planes)[torch.tensor([4, 2])]
    assert size_groups.gather_plane(taken, Group([1, 0], 2, 2), CPU)[:, 0, 0].tolist() == [2, 4]


def test_255_becomes_ignore() -> None:
    labels = size_groups.truth(torch.tensor([0, 20, 254, 255], dtype=torch.uint8))
    assert labels.dtype == torch.int64
    assert labels.tolist() == [0, 20, 254, IGNORE]
