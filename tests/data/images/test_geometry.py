"""Crop and flip against a slow loop, affine maps against Pillow, and the luck both are given."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional as F

from dmt.data.images import geometry
from dmt.data.images.geometry import CropFlip

torch.set_num_threads(1)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator(seed))


def slow_crop_flip(image: Tensor, dx: int, dy: int, flipped: bool, padding: int, fill: int) -> Tensor:
    """One image at a time: pad for real, cut a window, reverse its columns."""
    channels, height, width = image.shape
    padded = torch.full((channels, height + 2 * padding, width + 2 * padding), fill, dtype=torch.uint8)
    padded[:, padding : padding + height, padding : padding + width] = image
    top, left = padding + dy, padding + dx
    window = padded[:, top : top + height, left : left + width]
    return torch.flip(window, dims=[2]) if flipped else window


@pytest.mark.parametrize("shape", [(3, 32, 32), (3, 24, 40), (1, 28, 28)])
def test_crop_flip_equals_a_loop_over_padded_images(shape: tuple[int, int, int]) -> None:
    padding, fill = 4, 128
    offsets = torch.arange(-padding, padding + 1)
    dx, dy, flipped = torch.cartesian_prod(offsets, offsets, torch.tensor([0, 1])).unbind(1)  # all 162 outcomes
    images = noise(len(dx), *shape)
    before = images.clone()
    result = geometry.crop_flip(images, CropFlip(dx, dy, flipped.bool()), fill)
    for i, image in enumerate(images):
        expected = slow_crop_flip(image, int(dx[i]), int(dy[i]), bool(flipped[i]), padding, fill)
        assert torch.equal(result[i], expected)
    assert result.dtype == torch.uint8
    assert torch.equal(images, before)


def test_borders_are_reflected_like_torch_pads() -> None:
    images = torch.randint(0, 256, (6, 3, 7, 5), dtype=torch.uint8, generator=generator(1))
    draws = geometry.draw_crop_flip(6, 4, flip=True, generator=generator(2), device="cpu")
    padded = F.pad(images.float(), (4, 4, 4, 4), mode="reflect").to(torch.uint8)
    found = geometry.crop_flip(images, draws, fill=None)
    for image, whole, dx, dy, flipped in zip(found, padded, *draws, strict=True):
        window = whole[:, 4 + dy : 11 + dy, 4 + dx : 9 + dx]
        assert torch.equal(image, window.flip(-1) if flipped else window)


def test_crop_flip_fills_only_where_the_window_leaves_the_image() -> None:
    images = torch.zeros(1, 1, 4, 4, dtype=torch.uint8)
    draws = CropFlip(torch.tensor([2]), torch.tensor([-1]), torch.tensor([False]))
    expected = torch.tensor([[9, 9, 9, 9], [0, 0, 9, 9], [0, 0, 9, 9], [0, 0, 9, 9]], dtype=torch.uint8)
    assert torch.equal(geometry.crop_flip(images, draws, fill=9)[0, 0], expected)


def test_windows_and_mirrors_are_uniform_and_independent() -> None:
    count, padding = 81_000, 4
    draws = geometry.draw_crop_flip(count, padding, flip=True, generator=generator(1), device="cpu")
    cells = ((draws.dx + padding) * 9 + draws.dy + padding) * 2 + draws.flipped  # 9 · 9 · 2 equally likely
    seen = torch.bincount(cells, minlength=162).double()
    assert len(seen) == 162
    chi_square = ((seen - count / 162) ** 2 / (count / 162)).sum()
    assert chi_square < 221  # 99.9 % point of chi-square with 161 degrees of freedom


def test_without_flips_nothing_is_mirrored_and_the_windows_stay_the_same() -> None:
    mirrored = geometry.draw_crop_flip(100, 4, flip=True, generator=generator(2), device="cpu")
    straight = geometry.draw_crop_flip(100, 4, flip=False, generator=generator(2), device="cpu")
    assert mirrored.flipped.any()
    assert not straight.flipped.any()
    assert torch.equal(mirrored.dx, straight.dx)
    assert torch.equal(mirrored.dy, straight.dy)


def test_without_padding_the_window_is_the_image() -> None:
    images = noise(8, 3, 32, 32)
    draws = geometry.draw_crop_flip(8, 0, flip=False, generator=generator(3), device="cpu")
    assert torch.equal(geometry.crop_flip(images, draws, fill=128), images)


def test_the_same_generator_gives_the_same_windows() -> None:
    stream = generator(4)
    first, again, later = (
        geometry.draw_crop_flip(64, 4, flip=True, generator=source, device="cpu")
        for source in (stream, generator(4), stream)
    )
    assert torch.equal(first.dx, again.dx)
    assert torch.equal(first.dy, again.dy)
    assert torch.equal(first.flipped, again.flipped)
    assert not torch.equal(first.dx, later.dx)


@pytest.mark.parametrize(("height", "width"), [(32, 32), (24, 40)])
def test_any_affine_map_equals_pillow(height: int, width: int) -> None:
    images = noise(64, 3, height, width)
    near_identity = torch.tensor([1.0, 0.0, 0.0, 0.0, 1.0, 0.0], dtype=torch.float64)
    spread = torch.tensor([0.4, 0.4, 9.0, 0.4, 0.4, 9.0], dtype=torch.float64)
    matrices = near_identity + spread * torch.randn(64, 6, dtype=torch.float64, generator=generator(5))
    result = geometry.affine(images, matrices)
    for image, matrix, mapped in zip(images, matrices, result, strict=True):
        source = Image.fromarray(image.permute(1, 2, 0).numpy())
        reference = source.transform((width, height), Image.Transform.AFFINE, tuple(matrix.tolist()))
        assert np.array_equal(mapped.permute(1, 2, 0).numpy(), np.asarray(reference))


def test_shapes_never_depend_on_values() -> None:
    """Tensors on the meta device have no values: any read of one, or shape made from one, would fail."""
    images = torch.empty(5, 3, 24, 40, dtype=torch.uint8, device="meta")
    luck = torch.empty(5, dtype=torch.int64, device="meta")
    cropped = geometry.crop_flip(images, CropFlip(luck, luck, luck.bool()), fill=128)
    mapped = geometry.affine(images, torch.empty(5, 6, device="meta"))
    assert cropped.shape == mapped.shape == images.shape


def test_a_part_is_enlarged_to_the_whole() -> None:
    ramp = (torch.arange(8) * 8).to(torch.uint8)
    images = ramp.view(1, 1, 1, 8).expand(2, 1, 8, 8).contiguous()
    half, whole = torch.tensor([0.5, 1.0]), torch.ones(2)
    part = geometry.Part(half, whole, torch.tensor([-0.5, 0.0]), torch.zeros(2), torch.tensor([False, True]))
    left, mirrored = geometry.enlarge(images, part)
    # pixel centers of the left half, at a quarter and three quarters of each pixel; before the first there is none
    assert left[0, 0].tolist() == [0, 2, 6, 10, 14, 18, 22, 26]
    assert torch.equal(mirrored, images[1].flip(-1))


def test_parts_lie_within_their_images(generator: torch.Generator) -> None:
    part = geometry.draw_part(1000, (0.5, 1.0), 4 / 3, generator, "cpu")
    for center, length in ((part.x, part.width), (part.y, part.height)):
        assert (center.abs() + length <= 1 + 1e-6).all()
    area = part.width * part.height
    assert 0.5 <= area.min() < 0.52
    assert 0.9 < area.max() <= 1
    assert 0.45 < part.flipped.float().mean() < 0.55
