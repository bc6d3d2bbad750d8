import numpy as np
import pytest
import torch

from dmt.core import pasting
from dmt.core.pasting import Boxes

CPU = torch.device("cpu")


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("size", [(40, 60), (33, 21)])
def test_boxes_are_of_the_area_that_was_asked_for(size: tuple[int, int]) -> None:
    paste = pasting.draw_box(500, size, Boxes((0.25, 0.5)), rng(), CPU)
    assert paste.inside.shape == (500, *size)
    area = paste.inside.float().mean((1, 2))
    rounded = 0.5 / size[0] + 0.5 / size[1]  # sides are whole pixels
    assert area.min() > 0.25 - rounded
    assert area.max() < 0.5 + rounded
    assert float(area.mean()) == pytest.approx(0.375, abs=0.02)
    for inside in paste.inside:  # one box: rows times columns
        assert torch.equal(inside, inside.any(1)[:, None] & inside.any(0)[None, :])
        for line in (inside.any(1), inside.any(0)):
            places = line.nonzero().flatten()
            assert len(places) == places[-1] - places[0] + 1
    heights = paste.inside.any(2).sum(1) / size[0]
    assert heights.min() < 0.4
    assert heights.max() > 0.9
    corners = [paste.inside[:, y, x].any() for y in (0, -1) for x in (0, -1)]
    assert all(corners)


def test_some_images_stay_whole_and_boxes_may_be_many() -> None:
    some = pasting.draw_box(1000, (16, 16), Boxes((0.3, 0.3), share=0.5), rng(), CPU)
    assert float(some.inside.any(2).any(1).float().mean()) == pytest.approx(0.5, abs=0.05)
    many = pasting.draw_box(200, (32, 32), Boxes((0.1, 0.1), each=3), rng(), CPU)
    area = many.inside.float().mean((1, 2))
    assert area.max() > 0.25
    assert area.max() < 0.35


@pytest.mark.parametrize("count", [2, 3, 8])
def test_nobody_is_his_own_partner(count: int) -> None:
    seen = set()
    for seed in range(50):
        partners = pasting.roll(count, rng(seed))
        assert sorted(partners) == list(range(count))
        assert (partners != np.arange(count)).all()
        seen.add(tuple(partners))
    assert len(seen) == count - 1


def test_one_image_is_its_own_partner() -> None:
    assert pasting.roll(1, rng()).tolist() == [0]


def test_images_labels_and_valid_planes_are_pasted_alike() -> None:
    paste = pasting.draw_box(4, (10, 12), Boxes((0.2, 0.4)), rng(), CPU)
    number = torch.arange(4)[:, None, None].expand(4, 10, 12)
    images = number[:, None].expand(4, 3, 10, 12).float()
    labels = paste.apply(number)
    assert torch.equal(paste.apply(images), labels[:, None].expand_as(images).float())
    assert torch.equal(paste.apply(number == 2), labels == 2)
    for each in range(4):
        assert (labels[each][~paste.inside[each]] == each).all()
        assert (labels[each][paste.inside[each]] == paste.partners[each]).all()


def test_the_same_numbers_give_the_same_boxes() -> None:
    one, same, other = (pasting.draw_box(4, (10, 12), Boxes((0.2, 0.4)), rng(seed), CPU) for seed in (1, 1, 2))
    assert all(map(torch.equal, one, same))
    assert not torch.equal(one.inside, other.inside)
