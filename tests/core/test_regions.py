"""Connected regions beside a flood fill in plain Python, and parts of the boxes around them."""

import pytest
import torch
from torch import Tensor

from dmt.core import regions

SEEDS = torch.tensor([3, 14, 15, 92])


def blobs(seed: int = 1) -> Tensor:
    """Masks of four images, half full."""
    return torch.rand(4, 9, 12, generator=torch.Generator().manual_seed(seed)) < 0.35


def filled(mask: Tensor) -> set[frozenset[tuple[int, int]]]:
    """The regions of one mask (h, w), each as its places."""
    left = {(row, column) for row, column in mask.nonzero().tolist()}
    found = set()
    while left:
        region, edge = set(), [left.pop()]
        while edge:
            row, column = edge.pop()
            region.add((row, column))
            near = {(row + down, column + right) for down in (-1, 0, 1) for right in (-1, 0, 1)} & left
            left -= near
            edge += near
        found.add(frozenset(region))
    return found


def numbered(numbers: Tensor) -> set[frozenset[tuple[int, int]]]:
    known = set(numbers.flatten().tolist()) - {0}
    return {frozenset((row, column) for row, column in (numbers == each).nonzero().tolist()) for each in known}


@pytest.mark.parametrize("seed", range(5))
def test_regions_are_those_of_a_flood_fill(seed: int) -> None:
    mask = blobs(seed)
    found = regions.connected(mask)
    assert torch.equal(found > 0, mask)
    for numbers, each in zip(found, mask, strict=True):
        assert numbered(numbers) == filled(each)


def test_a_mask_may_be_empty_or_full() -> None:
    assert not regions.connected(torch.zeros(2, 3, 4, dtype=torch.bool)).any()
    assert (regions.connected(torch.ones(2, 3, 4, dtype=torch.bool)) == 12).all()
    assert not regions.box_parts(torch.zeros(4, 3, 4, dtype=torch.int64), 0.4, SEEDS).any()


def test_a_part_has_its_share_of_a_box_and_lies_in_it() -> None:
    mask = torch.zeros(4, 20, 20, dtype=torch.bool)
    mask[:, 3:13, 6] = True
    mask[:, 3, 6:11] = True  # an L: its box has 10 × 5 places
    seen = torch.zeros(20, 20, dtype=torch.bool)
    for number in range(300):
        cut = regions.box_parts(regions.connected(mask), 0.4, SEEDS + number)
        assert (cut.sum((1, 2)) == 4 * 2).all()
        for each in cut:
            rows, columns = each.any(1).nonzero()[:, 0], each.any(0).nonzero()[:, 0]
            assert len(rows) == 4
            assert len(columns) == 2
        seen |= cut.any(0)
    assert seen[3:13, 6:11].all(), "anywhere in the box, its corners too"
    assert seen.sum() == 50


def test_each_region_has_a_part_of_its_own_and_small_ones_none() -> None:
    mask = torch.zeros(4, 12, 12, dtype=torch.bool)
    mask[:, 0:5, 0:5] = mask[:, 6:11, 6:11] = True
    mask[:, 11, 0:2] = True  # two places: 0.4 of them are none
    cut = regions.box_parts(regions.connected(mask), 0.4, SEEDS)
    assert (cut[:, :5, :5].sum((1, 2)) == 4).all()
    assert (cut[:, 6:11, 6:11].sum((1, 2)) == 4).all()
    assert (cut.sum((1, 2)) == 8).all()
    assert len({tuple(each.flatten().tolist()) for each in cut}) > 1, "images have draws of their own"
    assert torch.equal(cut[:1], regions.box_parts(regions.connected(mask[:1]), 0.4, SEEDS[:1])), "and no others"
