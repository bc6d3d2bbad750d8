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


def test_half_of_the_classes_of_an_image_go_onto_another() -> None:
    labels = torch.tensor([[[3, 3, 0], [0, 5, 5]], [[1, 1, 1], [1, 1, 1]], [[2, 4, 6], [8, 8, 2]]])
    draw = pasting.draw_classes(3, rng(), CPU)
    assert sorted(draw.partners.tolist()) == [0, 1, 2]
    paste = draw.paste(labels)
    counts = {0: 1, 1: 0, 2: 2}  # three classes, one, four: halves, rounded down
    for each, partner in enumerate(draw.partners.tolist()):
        taken = torch.tensor(sorted(set(labels[partner][paste.inside[each]].tolist())))
        assert len(taken) == counts[partner]
        assert torch.equal(paste.inside[each], torch.isin(labels[partner], taken))  # whole classes or none of them


def test_any_class_may_go_and_pixels_that_are_not_valid_never_do() -> None:
    labels = torch.tensor([[[0, 1, 2, 3]], [[7, 7, 8, 8]]])
    valid = torch.tensor([[[True, True, False, True]], [[True, True, False, False]]])
    gone = set()
    for seed in range(40):
        draw = pasting.draw_classes(2, rng(seed), CPU)
        paste = draw.paste(labels, valid)
        assert not paste.inside[0].any()  # one class of its partner counts
        assert int(paste.inside[1].sum()) == 1  # of three
        gone.add(int(labels[0][paste.inside[1]]))
    assert gone == {0, 1, 3}


def test_a_box_may_show_another_picture_of_its_partner() -> None:
    paste = pasting.draw_box(3, (8, 8), Boxes((0.3, 0.3)), rng(), CPU)
    mine, theirs = torch.zeros(3, 8, 8), 1.0 + torch.arange(3.0)[:, None, None].expand(3, 8, 8)
    shown = paste.apply(mine, theirs)
    for each in range(3):
        assert (shown[each][paste.inside[each]] == 1 + paste.partners[each]).all()
        assert (shown[each][~paste.inside[each]] == 0).all()
