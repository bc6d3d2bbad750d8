"""Each of the 16 ops against Pillow, gray level by gray level, and the published facts about the policy.

All 16 ops are exact here, at every magnitude and sign, so no test allows a tolerance.
"""

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageEnhance, ImageOps
from torch import Tensor

from dmt.data.images import randaugment
from dmt.data.images.randaugment import FIXMATCH, OPS, PAPER, POLICIES, SANE, Draws, Policy
from dmt.errors import ConfigError

torch.set_num_threads(1)

CPU = torch.device("cpu")
SIZES = [(32, 32), (24, 40)]  # height, width


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def noise(*shape: int, seed: int = 0, low: int = 0, high: int = 256) -> Tensor:
    return torch.randint(low, high, shape, dtype=torch.uint8, generator=generator(seed))


def scenes(height: int, width: int) -> Tensor:
    """Noise, a gradient, and the corner cases of histograms: (8, 3, H, W)."""
    x, y = torch.arange(width).expand(height, width), torch.arange(height)[:, None].expand(height, width)
    gradient = torch.stack([x * 255 // (width - 1), y * 255 // (height - 1), (x + y) * 3]).to(torch.uint8)
    constant = torch.tensor([0, 77, 255], dtype=torch.uint8)[:, None, None].expand(3, height, width)
    two_valued = torch.where(noise(3, height, width, seed=1) < 128, 40, 200).to(torch.uint8)
    # All but a few pixels share the lightest level: too few below it for Equalize to have a step.
    nearly_constant = torch.where(noise(3, height, width, seed=2) < 8, 10, 90).to(torch.uint8)
    narrow = noise(3, height, width, seed=3, low=60, high=75)
    dark = (noise(3, height, width, seed=4).float() ** 2 / 255).to(torch.uint8)
    return torch.stack(
        [noise(3, height, width), gradient, constant, two_valued, nearly_constant, narrow, dark, 255 - dark]
    )


def every_level(op: str, count: int, seed: int) -> tuple[Draws, Tensor]:
    """Draws of `op` for `count` images at all 10 magnitudes and both signs, and each draw's image number."""
    image, magnitude, sign = torch.cartesian_prod(
        torch.arange(count), torch.arange(1, 11), torch.tensor([-1, 1])
    ).unbind(1)
    x, y = torch.rand(2, len(image), generator=generator(seed))
    return Draws(torch.full_like(image, OPS.index(op)), magnitude, sign, x, y), image


def pick(draws: Draws, index: int | Tensor) -> Draws:
    rows = torch.as_tensor(index).reshape(-1)
    return Draws(*(values[rows] for values in draws))


def pillow(image: Image.Image, draws: Draws, policy: Policy) -> Image.Image:
    """What the published table says of each op, in Pillow's own calls; `draws` holds one image's."""
    name, m, sign = OPS[int(draws.op)], int(draws.magnitude), int(draws.sign)
    width, height = image.size
    share = 0.03 if policy is FIXMATCH else 0.045  # of the image, for every magnitude
    match name:
        case "AutoContrast":
            return ImageOps.autocontrast(image)
        case "Equalize":
            return ImageOps.equalize(image)
        case "Invert":
            return ImageOps.invert(image)
        case "Rotate":
            return image.rotate(sign * 3 * m)
        case "Posterize":
            kept = (4, 4, 5, 5, 6, 6, 6, 7, 7, 8) if policy is FIXMATCH else (1, 1, 1, 1, 2, 2, 2, 3, 3, 4)
            return ImageOps.posterize(image, kept[m - 1])
        case "Solarize":
            return ImageOps.solarize(image, 25.6 * m)  # type: ignore[arg-type]  # the published threshold
        case "SolarizeAdd":
            brighter = np.clip(np.asarray(image).astype(int) + 11 * m, 0, 255)
            return ImageOps.solarize(Image.fromarray(brighter.astype(np.uint8)), 128)
        case "Color" | "Contrast" | "Brightness" | "Sharpness":
            enhancer: ImageEnhance._Enhance = getattr(ImageEnhance, name)(image)
            return enhancer.enhance(0.05 + 0.09 * m if policy is FIXMATCH else 0.1 + 0.18 * m)
        case "ShearX":
            return affine(image, (1, sign * 0.03 * m, 0, 0, 1, 0))
        case "ShearY":
            return affine(image, (1, 0, 0, sign * 0.03 * m, 1, 0))
        case "TranslateXabs":
            return affine(image, (1, 0, sign * (10 * m if policy is PAPER else share * m * width), 0, 1, 0))
        case "TranslateYabs":
            return affine(image, (1, 0, 0, 0, 1, sign * (10 * m if policy is PAPER else share * m * height)))
        case _:
            side = 4 * m if policy is PAPER else 0.05 * m * min(width, height)
            return cutout(
                image, 1 + float(draws.cutout_x) * (width - 1), 1 + float(draws.cutout_y) * (height - 1), side
            )


def affine(image: Image.Image, matrix: tuple[float, ...]) -> Image.Image:
    return image.transform(image.size, Image.Transform.AFFINE, matrix)


def cutout(image: Image.Image, x: float, y: float, side: float) -> Image.Image:
    left, top = int(max(0, x - side / 2)), int(max(0, y - side / 2))
    right, bottom = min(image.width, left + side), min(image.height, top + side)
    result = image.copy()
    ImageDraw.Draw(result).rectangle((left, top, right, bottom), (125, 123, 114))
    return result


def assert_pillow_agrees(images: Tensor, draws: Draws, policy: Policy) -> None:
    result = randaugment.apply(images, draws, policy)
    assert result.dtype == torch.uint8
    for i, image in enumerate(images):
        reference = pillow(Image.fromarray(image.permute(1, 2, 0).numpy()), pick(draws, i), policy)
        worst = np.abs(np.asarray(reference).astype(int) - result[i].permute(1, 2, 0).numpy()).max()
        assert worst == 0, f"image {i} at magnitude {int(draws.magnitude[i])}: {worst} levels off"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("op", OPS)
def test_every_op_equals_pillow_at_every_magnitude_and_sign(op: str, size: tuple[int, int]) -> None:
    images = scenes(*size)
    draws, image = every_level(op, len(images), seed=11)
    assert_pillow_agrees(images[image], draws, PAPER)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("op", ["CutoutAbs", "TranslateXabs", "TranslateYabs"])
def test_sane_ops_equal_pillow(op: str, size: tuple[int, int]) -> None:
    images = scenes(*size)
    draws, image = every_level(op, len(images), seed=12)
    assert_pillow_agrees(images[image], draws, SANE)


def test_autocontrast_equals_pillow_for_any_range_of_levels() -> None:
    """Pillow truncates a double here, so the exact quotient is off by one for 12 094 of (range, level)."""
    bounds = torch.randint(0, 256, (400, 3, 2), generator=generator(5)).sort(dim=2).values
    low, high = bounds[..., 0, None, None], bounds[..., 1, None, None]
    images = (low + noise(400, 3, 32, 32) * (high - low) // 255).to(torch.uint8)
    draws = Draws(*(torch.zeros(400, dtype=torch.int64) for _ in range(3)), *torch.zeros(2, 400))
    assert OPS[0] == "AutoContrast"
    assert_pillow_agrees(images, draws, PAPER)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_a_mixed_batch_equals_each_op_alone(policy: Policy) -> None:
    images = scenes(32, 32).repeat(60, 1, 1, 1)
    draws = randaugment.draw(len(images), generator(6), CPU)
    assert set(draws.op.tolist()) == set(range(len(OPS)))
    before = images.clone()
    together = randaugment.apply(images, draws, policy)
    assert torch.equal(images, before)
    for i in range(0, len(images), 7):
        assert torch.equal(together[i : i + 1], randaugment.apply(images[i : i + 1], pick(draws, i), policy))
    assert_pillow_agrees(images, draws, policy)


def test_paper_and_sane_differ_in_translate_and_cutout_alone() -> None:
    images = noise(1, 3, 32, 32).expand(20, -1, -1, -1)
    differing = set()
    for op in OPS:
        draws, _ = every_level(op, 1, seed=13)
        if not torch.equal(*(randaugment.apply(images, draws, policy) for policy in (PAPER, SANE))):
            differing.add(op)
    assert differing == {"CutoutAbs", "TranslateXabs", "TranslateYabs"}


def test_ops_magnitudes_and_signs_are_uniform_and_independent() -> None:
    count = 320_000
    draws = randaugment.draw(count, generator(7), CPU)
    assert set(draws.sign.tolist()) == {-1, 1}
    cells = (draws.op * 10 + draws.magnitude - 1) * 2 + (draws.sign + 1) // 2  # 16 · 10 · 2 equally likely
    seen = torch.bincount(cells, minlength=320).double()
    assert len(seen) == 320
    chi_square = ((seen - count / 320) ** 2 / (count / 320)).sum()
    assert chi_square < 402  # 99.9 % point of chi-square with 319 degrees of freedom


def test_cutout_centers_are_uniform_and_independent() -> None:
    count = 100_000
    draws = randaugment.draw(count, generator(8), CPU)
    seen = torch.bincount((draws.cutout_x * 10).long() * 10 + (draws.cutout_y * 10).long(), minlength=100).double()
    assert len(seen) == 100
    chi_square = ((seen - count / 100) ** 2 / (count / 100)).sum()
    assert chi_square < 149  # 99.9 % point of chi-square with 99 degrees of freedom


def test_the_same_generator_gives_the_same_draws() -> None:
    stream = generator(9)
    first, again, later = (randaugment.draw(64, source, CPU) for source in (stream, generator(9), stream))
    for one, same, other in zip(first, again, later, strict=True):
        assert torch.equal(one, same)
        assert not torch.equal(one, other)


def black(images: Tensor) -> Tensor:
    return (images == 0).all(dim=(1, 2, 3))


def test_the_paper_translates_from_magnitude_4_on_to_all_black() -> None:
    for op in ("TranslateXabs", "TranslateYabs"):
        draws, _ = every_level(op, 1, seed=14)
        images = noise(20, 3, 32, 32, low=1)
        assert torch.equal(black(randaugment.apply(images, draws, PAPER)), draws.magnitude >= 4)
        assert not black(randaugment.apply(images, draws, SANE)).any()


def test_the_paper_blackens_one_image_in_eleven() -> None:
    """2 of 16 ops at 7 of 10 magnitudes: 8.75 % of all images. The sane policy blackens none."""
    images, stream = noise(500, 3, 32, 32, low=1), generator(10)
    blackened = {"paper": 0, "sane": 0}
    for _ in range(32):
        draws = randaugment.draw(len(images), stream, CPU)
        for name in blackened:
            blackened[name] += int(black(randaugment.apply(images, draws, POLICIES[name])).sum())
    assert abs(blackened["paper"] / 16_000 - 0.0875) < 0.007  # three standard deviations
    assert blackened["sane"] == 0


def erased_area(policy: Policy) -> Tensor:
    """The share of a 32×32 image that Cutout covers, for 10 000 random draws of it."""
    images, stream = torch.zeros(500, 3, 32, 32, dtype=torch.uint8), generator(15)
    areas = []
    for _ in range(20):
        luck = randaugment.draw(len(images), stream, CPU)
        draws = luck._replace(op=torch.full_like(luck.op, OPS.index("CutoutAbs")))
        areas.append((randaugment.apply(images, draws, policy)[:, 0] == 125).double().mean(dim=(1, 2)))
    return torch.cat(areas)


def test_the_paper_cuts_out_45_percent_and_one_image_in_ten_completely() -> None:
    area = erased_area(PAPER)
    assert abs(area.mean() - 0.45) < 0.015
    assert abs((area == 1).double().mean() - 0.10) < 0.015


def test_the_sane_policy_cuts_out_at_most_half_the_side() -> None:
    area = erased_area(SANE)
    assert area.max() == 17 * 17 / 32**2  # half the side, and the far edge that Pillow's rectangle includes
    assert (area > 0).all()


@pytest.mark.parametrize(
    "images",
    [noise(4, 1, 28, 28), noise(3, 32, 32), torch.zeros(4, 3, 32, 32)],
    ids=["gray", "single", "float"],
)
def test_other_images_are_refused_in_one_line(images: Tensor) -> None:
    draws = randaugment.draw(4, generator(0), CPU)
    with pytest.raises(
        ConfigError, match=r"^RandAugment takes uint8 RGB images .*, not .*set augment, .* augment_strong=faded"
    ):
        randaugment.apply(images, draws, PAPER)


def test_nothing_is_read_back_from_the_device() -> None:
    """Tensors on the meta device have no values: any read of one, or shape made from one, would fail."""
    luck = randaugment.draw(6, generator(0), CPU)
    draws = Draws(*(values.to("meta") for values in luck))
    images = torch.empty(6, 3, 24, 40, dtype=torch.uint8, device="meta")
    assert randaugment.apply(images, draws, PAPER).shape == images.shape


def test_apply_is_one_graph_without_breaks() -> None:
    images = noise(64, 3, 32, 32)
    draws = randaugment.draw(64, generator(16), CPU)
    compiled = torch.compile(randaugment.apply, backend="eager", fullgraph=True)
    assert torch.equal(compiled(images, draws, SANE), randaugment.apply(images, draws, SANE))
