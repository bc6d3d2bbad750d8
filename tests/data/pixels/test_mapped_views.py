import numpy as np
import pytest
import torch
from torch import Tensor

from dmt.core.labeling_views import LabelingView
from dmt.data import ragged
from dmt.data.pixels import mapped_views, size_groups, windows
from dmt.data.pixels.size_groups import Group
from dmt.data.pixels.windows import Window, WindowDraws
from dmt.data.ragged import Ragged

CPU = torch.device("cpu")
SIZES = [(30, 20), (17, 32), (32, 9), (30, 20), (2, 31)]


def images() -> tuple[Ragged, Tensor]:
    """As they are, and padded as nets see them."""
    numbers = np.random.default_rng(0)
    whole = ragged.stack([numbers.integers(1, 256, (*size, 3), dtype=np.uint8) for size in SIZES])
    return whole, size_groups.gather(whole, Group(list(range(len(SIZES))), 32, 32), CPU)


def along(length: int, to: int) -> np.ndarray:
    """The matrix (to, length) of bilinear resizing along one side, pixel centers to pixel centers."""
    found = np.zeros((to, length))
    for cell in range(to):
        place = min(max((cell + 0.5) * length / to - 0.5, 0), length - 1)
        low = min(int(place), max(length - 2, 0))
        found[cell, low] += 1 - (place - low)
        if length > 1:
            found[cell, low + 1] += place - low
    return found


def resized(plane: np.ndarray, to: tuple[int, int]) -> np.ndarray:
    """(C, H, W) by hand."""
    height, width = plane.shape[1:]
    return np.asarray(along(height, to[0]) @ plane @ along(width, to[1]).T)


def test_each_image_is_mirrored_within_its_own_padding() -> None:
    _, batch = images()
    turned = mapped_views.mirror(batch, SIZES)
    for row, (height, width) in enumerate(SIZES):
        assert torch.equal(turned[row, :, :height, :width], batch[row, :, :height, :width].flip(-1))
        assert not turned[row, :, height:].any()
        assert not turned[row, :, :, width:].any()
    assert torch.equal(mapped_views.mirror(turned, SIZES), batch)


@pytest.mark.parametrize("scale", [0.5, 0.75, 1.25, 2.0])
def test_images_are_resized_as_training_resizes_them(scale: float) -> None:
    whole, batch = images()
    seen: list[Tensor] = []

    def net(shown: Tensor) -> Tensor:
        seen.append(shown)
        return shown

    mapped_views.logits(batch, SIZES, LabelingView(scale), net)
    shown = torch.cat(seen)
    height, width = shown.shape[-2:]
    assert height % 32 == width % 32 == 0
    count = len(SIZES)
    draws = WindowDraws(torch.full((count,), scale), torch.zeros(count), torch.zeros(count), torch.zeros(count).bool())
    grid = windows.place(Window(height, width), draws, whole.heights, whole.widths)
    torch.testing.assert_close(shown, windows.images(whole, torch.arange(count), grid), rtol=0, atol=1e-6)


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("scale", [0.75, 1.6])
def test_logits_go_back_the_way_the_image_came(scale: float, mirrored: bool) -> None:
    """A net that weighs its left neighbor, so that mirroring matters; everything else by hand in numpy."""
    _, batch = images()

    def net(shown: Tensor) -> Tensor:
        return shown + 2 * torch.nn.functional.pad(shown, (1, 0))[..., :-1]

    found = mapped_views.logits(batch, SIZES, LabelingView(scale, mirrored), net)
    assert found.shape == batch.shape
    for row, (height, width) in enumerate(SIZES):
        image = batch[row, :, :height, :width].double().numpy()
        small = resized(image, (max(1, int(scale * height)), max(1, int(scale * width))))
        shown = small[..., ::-1] if mirrored else small
        said = shown + 2 * np.pad(shown, ((0, 0), (0, 0), (1, 0)))[..., :-1]
        expected = resized(said[..., ::-1] if mirrored else said, (height, width))
        np.testing.assert_allclose(found[row, :, :height, :width].numpy(), expected, rtol=0, atol=1e-5)


def test_a_large_scale_is_seen_in_parts_of_no_more_pixels() -> None:
    _, batch = images()
    shapes: list[torch.Size] = []

    def net(shown: Tensor) -> Tensor:
        shapes.append(shown.shape)
        return shown

    mapped_views.logits(batch, SIZES, LabelingView(2.0, mirrored=True), net)
    assert [tuple(shape) for shape in shapes] == [(1, 3, 64, 64)] * 5
    shapes.clear()
    mapped_views.logits(batch, SIZES, LabelingView(0.5), net)
    assert [tuple(shape) for shape in shapes] == [(5, 3, 32, 32)]
