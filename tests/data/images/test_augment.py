import dataclasses

import pytest
import torch
from torch import Tensor

from dmt.data.images import augment, randaugment
from dmt.data.images.augment import Crop, Faded, Hole, Strong, Stronger
from dmt.data.images.geometry import CropFlip
from dmt.data.images.randaugment import FIXMATCH_POOL, IDENTITY, OPS

CPU = torch.device("cpu")
STILL = Crop(padding=0, fill=0, flip=False)


def generator(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def noise(*shape: int) -> Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator())


def test_a_hole_lies_where_it_was_drawn_and_ends_at_the_edge() -> None:
    images = torch.ones(3, 2, 8, 10, dtype=torch.uint8)
    hole = Hole(x=torch.tensor([0.5, 0.0, 0.99]), y=torch.tensor([0.5, 0.0, 0.5]))
    cut = augment.cut_hole(images, hole, share=0.5, fill=9)
    expected = torch.ones(3, 8, 10, dtype=torch.uint8)
    expected[0, 2:6, 3:7] = 9
    expected[1, :2, :2] = 9
    expected[2, 2:6, 8:] = 9
    assert torch.equal(cut, expected[:, None].expand_as(cut))
    assert torch.equal(augment.cut_hole(images, hole, share=0.0, fill=9), images)


def test_holes_are_everywhere() -> None:
    hole = augment.draw_hole(2000, generator(), CPU)
    for each in hole:
        assert float(each.mean()) == pytest.approx(0.5, abs=0.03)
        assert float(each.min()) >= 0
        assert float(each.max()) < 1


def test_faded_changes_brightness_and_cuts_a_hole() -> None:
    policy, images = Faded(STILL, brightness=0.5, hole=0.4), torch.full((300, 1, 10, 10), 100, dtype=torch.uint8)
    draws = policy.draw(300, generator(), CPU)
    changed = policy.apply(images, draws)
    assert changed.dtype == torch.uint8
    holes = changed == 0
    assert (holes.sum((1, 2, 3)) <= 16).all()
    assert (holes.sum((1, 2, 3)) >= 4).all()
    lightest = changed.amax((1, 2, 3))
    assert ((changed == lightest[:, None, None, None]) | holes).all()
    assert torch.equal(lightest, (100 * draws[1]).to(torch.uint8))
    assert int(lightest.min()) in range(50, 54)
    assert int(lightest.max()) in range(147, 151)


def test_a_factor_of_one_gives_the_image_back() -> None:
    images = noise(5, 1, 8, 8)
    zeros = torch.zeros(5, dtype=torch.int64)
    draws = CropFlip(zeros, zeros, zeros.bool()), torch.ones(5), Hole(torch.zeros(5), torch.zeros(5))
    assert torch.equal(Faded(STILL, brightness=0.5, hole=0.0).apply(images, draws), images)


def test_stronger_leaves_images_alone_by_chance() -> None:
    policy = Stronger(STILL, randaugment.POLICIES["fixmatch"], FIXMATCH_POOL, operations=2, chance=0.5, hole=0.0)
    images = noise(1, 3, 16, 16).repeat(600, 1, 1, 1)
    draws = policy.draw(len(images), generator(), CPU)
    changed = policy.apply(images, draws)
    nothing = (draws[1][0].op == IDENTITY) & (draws[1][1].op == IDENTITY)
    same = (changed == images).all((1, 2, 3))
    assert same[nothing].all()
    assert float(nothing.float().mean()) == pytest.approx((0.5 + 0.5 / 14) ** 2, abs=0.06)
    assert float(same.float().mean()) < 0.45  # the others are other images
    once = randaugment.apply(images, draws[1][0], policy.policy)
    assert torch.equal(randaugment.apply(once, draws[1][1], policy.policy), changed)


def test_two_operations_are_done_one_after_the_other() -> None:
    policy = augment.POLICIES["sane-2"]
    assert isinstance(policy, Strong)
    images = noise(40, 3, 16, 16)
    crop, (first, second) = policy.draw(40, generator(), CPU)
    assert not torch.equal(first.op, second.op)
    once = randaugment.apply(policy.crop.apply(images, crop), first, policy.policy)
    assert torch.equal(policy.apply(images, (crop, (first, second))), randaugment.apply(once, second, policy.policy))
    assert policy.policy == randaugment.POLICIES["sane"]


def test_fixmatch_cuts_a_gray_hole_of_half_the_side() -> None:
    policy = augment.POLICIES["fixmatch"]
    assert isinstance(policy, Stronger)
    holes = dataclasses.replace(policy, crop=STILL, chance=0.0)
    changed = holes.apply(torch.zeros(50, 3, 32, 32, dtype=torch.uint8), holes.draw(50, generator(), CPU))
    assert changed.unique().tolist() == [0, 127]  # type: ignore[no-untyped-call]
    gray = (changed == 127).all(1).sum((1, 2))
    assert int(gray.max()) == 16 * 16
    assert int(gray.min()) >= 8 * 8


def test_the_pool_holds_fourteen_ops() -> None:
    assert len(set(FIXMATCH_POOL)) == 14
    names = {"Identity" if op == IDENTITY else OPS[op] for op in FIXMATCH_POOL}
    assert names == {*OPS, "Identity"} - {"Invert", "SolarizeAdd", "CutoutAbs"}
    draws = randaugment.draw(4000, generator(), CPU, FIXMATCH_POOL)
    counts = draws.op.bincount(minlength=17)
    assert set(counts.nonzero().flatten().tolist()) == set(FIXMATCH_POOL)
    assert int(counts.max()) < 1.3 * 4000 / 14
    rarely = randaugment.draw(4000, generator(), CPU, FIXMATCH_POOL, chance=0.5)
    assert float((rarely.op == IDENTITY).float().mean()) == pytest.approx(0.5 + 0.5 / 14, abs=0.03)


@pytest.mark.parametrize("op", ["Color", "Contrast", "Brightness", "Sharpness"])
def test_fixmatchs_colors_only_fade(op: str) -> None:
    low, high = randaugment.FIXMATCH_RANGES[op]
    assert (low, high) == (0.05, 0.95)
    assert randaugment.RANGES[op] == (0.1, 1.9)


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (("paper",), ("paper", "crop-flip", "fixmatch")),
        (("shift",), ("shift", "shift", "faded")),
        (("none",), ("none", "shift", "faded")),
        (("crop-flip", "none", "sane"), ("crop-flip", "none", "sane")),
    ],
)
def test_views_that_are_not_named_follow_from_training(named: tuple[str, ...], expected: tuple[str, ...]) -> None:
    found = augment.views(*named)
    assert found == {
        kind: augment.POLICIES[name] for kind, name in zip(("train", "weak", "strong"), expected, strict=True)
    }


def test_photos_are_seen_in_part_and_in_other_light() -> None:
    policy = augment.POLICIES["photo"]
    images = torch.randint(0, 256, (64, 3, 16, 16), dtype=torch.uint8, generator=generator())
    draws = policy.draw(64, generator(), CPU)
    changed = policy.apply(images, draws)
    assert changed.dtype == torch.uint8
    assert changed.shape == images.shape
    whole = draws._replace(
        part=draws.part._replace(
            width=torch.ones(64), height=torch.ones(64), x=torch.zeros(64), y=torch.zeros(64),
            flipped=torch.zeros(64, dtype=torch.bool),
        )
    )  # fmt: skip
    assert torch.equal(policy.apply(images, whole._replace(light=torch.ones(2, 64))), images)
    darker = policy.apply(images, whole._replace(light=torch.tensor([0.5, 1.0])[:, None].expand(2, 64)))
    assert (darker.float() - images.float() / 2).abs().max() <= 0.5
    flat = policy.apply(images, whole._replace(light=torch.tensor([1.0, 0.0])[:, None].expand(2, 64)))
    assert torch.equal(flat.float().mean((1, 2, 3)), images.float().mean((1, 2, 3)).round())
