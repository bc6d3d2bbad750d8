"""One plan for images, labels, confidences and valid planes; nobody is pasted with itself."""

import numpy as np
import pytest
import torch

from dmt.core import pasting
from dmt.core.pasting import Paste

CPU = torch.device("cpu")


def draw(seed: int, count: int = 6, **options: float) -> Paste:
    rng = np.random.default_rng(seed)
    return pasting.draw_box(count, (20, 30), (0.25, 0.5), rng, CPU, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [2, 3, 8])
def test_nobody_is_pasted_with_itself(count: int) -> None:
    for seed in range(50):
        partners = draw(seed, count).partners.tolist()
        assert sorted(partners) == list(range(count))
        assert all(partner != place for place, partner in enumerate(partners))


def test_one_alone_stays_itself() -> None:
    images = torch.rand(1, 3, 20, 30)
    assert torch.equal(draw(1, 1).apply(images), images)


def test_image_label_confidence_and_valid_plane_agree_pixel_by_pixel() -> None:
    paste = draw(3)
    labels = torch.arange(6 * 20 * 30).view(6, 20, 30)
    pasted = paste.apply(labels)
    images = (labels[:, None] + torch.tensor([0, 1000, 2000]).view(1, 3, 1, 1)).float()
    for channel in range(3):
        assert torch.equal(paste.apply(images)[:, channel], pasted.float() + 1000 * channel)
    assert torch.equal(paste.apply(labels / 2), pasted / 2)
    assert torch.equal(paste.apply(labels % 3 == 0), pasted % 3 == 0)
    for sample, partner in enumerate(paste.partners.tolist()):
        inside = paste.inside[sample]
        assert torch.equal(pasted[sample][inside], labels[partner][inside])
        assert torch.equal(pasted[sample][~inside], labels[sample][~inside])


def test_a_box_lies_inside_and_covers_its_share() -> None:
    for seed in range(30):
        for inside in draw(seed).inside.numpy():
            rows, columns = np.flatnonzero(inside.any(1)), np.flatnonzero(inside.any(0))
            assert inside[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].all()  # one whole box
            assert 0.2 < inside.mean() < 0.55  # as drawn, up to whole pixels


def test_an_image_gets_a_box_with_the_given_chance() -> None:
    used = torch.cat([draw(seed, share=0.3).inside.flatten(1).any(1) for seed in range(100)])
    assert 0.2 < float(used.float().mean()) < 0.4
    assert bool(torch.cat([draw(seed).inside.flatten(1).any(1) for seed in range(20)]).all())
