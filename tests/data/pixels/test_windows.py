import dataclasses

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from dmt.data import ragged
from dmt.data.pixels import windows
from dmt.data.pixels.windows import Window, WindowDraws
from dmt.data.ragged import Ragged
from dmt.errors import ConfigError

SIZES = [(20, 31), (7, 5), (1, 1), (40, 13), (33, 33), (1, 60), (28, 46), (30, 58)]


def colors(sizes: list[tuple[int, int]] = SIZES) -> Ragged:
    numbers = np.random.default_rng(0)
    return ragged.stack([numbers.integers(0, 256, (*size, 3), dtype=np.uint8) for size in sizes])


def masks(sizes: list[tuple[int, int]] = SIZES) -> Ragged:
    numbers = np.random.default_rng(1)
    return ragged.stack([numbers.integers(0, 21, size, dtype=np.uint8) for size in sizes])


def grid_of(source: Ragged, positions: Tensor, window: Window, draws: WindowDraws) -> windows.Grid:
    return windows.place(window, draws, source.heights[positions], source.widths[positions])


def by_hand(plane: Tensor, window: Window, draws: WindowDraws, row: int, fill: int, mode: str) -> Tensor:
    """Resize (C, H, W), pad, crop and mirror, one whole step after the other."""
    scale, y, x = (float(each[row]) for each in draws[:3])
    height, width = (max(1, int(scale * side)) for side in plane.shape[1:])
    linear = {"align_corners": False, "antialias": False} if mode == "bilinear" else {}
    resized = functional.interpolate(plane[None], size=(height, width), mode=mode, **linear)[0]
    missing = (0, max(window.width - width, 0), 0, max(window.height - height, 0))
    padded = functional.pad(resized, missing, value=fill)
    top = int(y * (max(height - window.height, 0) + 1))
    left = int(x * (max(width - window.width, 0) + 1))
    crop = padded[:, top : top + window.height, left : left + window.width]
    return crop.flip(-1) if draws.flipped[row] else crop


@pytest.mark.parametrize(
    "window",
    [Window(16, 16), Window(24, 9), Window(50, 70), Window(1, 1), Window(16, 16, (1.0, 1.0)), Window(12, 20, (0.1, 4))],
    ids=str,
)
def test_a_window_equals_resize_pad_crop_mirror(window: Window, generator: torch.Generator) -> None:
    images, labels = colors(), masks()
    positions = torch.arange(len(SIZES)).repeat(6)
    draws = window.draw(len(positions), generator, "cpu")
    grid = grid_of(images, positions, window, draws)
    have, have_labels = windows.images(images, positions, grid), windows.plane(labels, positions, grid, 255)
    assert have.shape == (len(positions), 3, window.height, window.width)
    assert have.dtype == torch.float32
    assert have_labels.dtype == torch.uint8
    for row, position in enumerate(positions.tolist()):
        image = images.image(position).permute(2, 0, 1).float() / 255
        torch.testing.assert_close(
            have[row], by_hand(image, window, draws, row, 0, "bilinear"), atol=1e-5, rtol=0, msg=f"row {row}"
        )
        mask = labels.image(position)[None].float()
        assert torch.equal(have_labels[row].float(), by_hand(mask, window, draws, row, 255, "nearest-exact")[0])


def unscaled(count: int, y: float = 0.0, x: float = 0.0, flipped: bool = False) -> WindowDraws:
    one = torch.ones(count)
    return WindowDraws(one, one * y, one * x, torch.full((count,), flipped))


def test_one_place_in_image_mask_and_plane(generator: torch.Generator) -> None:
    image = np.zeros((30, 40, 3), np.uint8)
    image[12:15, 21:25] = 255
    images = ragged.stack([image])
    labels = ragged.stack([image[:, :, 0] // 255])
    codes = ragged.stack([image[:, :, 0].astype(np.int16) * 100])
    window = Window(24, 24, (1.0, 3.0))
    positions = torch.zeros(200, dtype=torch.int64)
    grid = grid_of(images, positions, window, window.draw(200, generator, "cpu"))
    seen = windows.images(images, positions, grid)[:, 0]
    marked = windows.plane(labels, positions, grid, 255) == 1
    assert torch.equal(windows.plane(codes, positions, grid, 0) == 25500, marked)
    assert marked.flatten(1).any(1).sum() > 50
    # a cell of the mark is at least as far inside as half a pixel: bilinear keeps a quarter of it in a corner
    assert (seen[marked] >= 0.25).all()
    assert (seen[~marked & grid.inside] <= 0.75).all()


def test_a_small_image_is_padded_at_the_bottom_and_right() -> None:
    images, labels = ragged.stack([np.full((3, 4, 3), 255, np.uint8)]), ragged.stack([np.full((3, 4), 7, np.uint8)])
    positions = torch.zeros(1, dtype=torch.int64)
    window = Window(6, 6)
    for flipped in (False, True):
        grid = grid_of(images, positions, window, unscaled(1, 0.99, 0.99, flipped))
        inside = torch.zeros(6, 6, dtype=torch.bool)
        inside[:3, :4] = True
        inside = inside.flip(1) if flipped else inside
        assert torch.equal(grid.inside[0], inside)
        assert torch.equal(windows.images(images, positions, grid)[0], inside.float().expand(3, 6, 6))
        assert torch.equal(windows.plane(labels, positions, grid, 255)[0], torch.where(inside, 7, 255).byte())


def test_a_crop_may_hold_no_label_at_all() -> None:
    labels = ragged.stack([np.full((9, 9), 255, np.uint8)])
    positions = torch.zeros(2, dtype=torch.int64)
    window = Window(12, 5)
    grid = grid_of(labels, positions, window, unscaled(2))
    assert (windows.plane(labels, positions, grid, 255) == 255).all()


def test_taken_images_share_the_buffer(generator: torch.Generator) -> None:
    images = colors()
    positions = torch.tensor([6, 0, 3])
    taken = images[positions]
    assert taken.pixels is images.pixels
    window = Window(16, 16)
    draws = window.draw(3, generator, "cpu")
    grid = grid_of(images, positions, window, draws)
    want = windows.images(images, positions, grid)
    everything = torch.arange(3)
    for same in (taken, taken.packed()):
        assert torch.equal(windows.images(same, everything, grid_of(same, everything, window, draws)), want)


def test_draws_cover_their_ranges(generator: torch.Generator) -> None:
    draws = Window(8, 8).draw(4000, generator, "cpu")
    assert [each.shape for each in draws] == [(4000,)] * 4
    assert 0.5 <= draws.scale.min() < 0.51
    assert 1.49 < draws.scale.max() <= 1.5
    assert abs(draws.scale.mean() - 1.0) < 0.02
    assert abs(draws.flipped.float().mean() - 0.5) < 0.03
    assert not Window(8, 8, flip=False).draw(4000, generator, "cpu").flipped.any()


def test_every_offset_occurs_and_equally_often(generator: torch.Generator) -> None:
    window = Window(8, 8, (1.0, 1.0), flip=False)
    lengths = torch.full((4000,), 17)
    grid = windows.place(window, window.draw(4000, generator, "cpu"), lengths, lengths)
    for axis in grid:
        counts = axis.nearest[:, 0].bincount()
        assert len(counts) == 10  # offsets 0 … 9
        assert counts.min() > 300


def test_luck_below_one_stays_inside() -> None:
    below = torch.tensor(1.0).nextafter(torch.tensor(0.0)).item()
    lengths = torch.arange(8, 5000)
    grid = windows.place(Window(8, 8), unscaled(len(lengths), below, below), lengths, lengths)
    assert torch.equal(grid.rows.nearest[:, -1], lengths - 1)
    assert grid.inside.all()


def test_the_same_stream_gives_the_same_windows() -> None:
    def draw(seed: int, window: Window) -> WindowDraws:
        return window.draw(50, torch.Generator().manual_seed(seed), "cpu")

    window = Window(8, 8)
    assert all(map(torch.equal, draw(3, window), draw(3, window)))
    assert not torch.equal(draw(3, window).x, draw(4, window).x)
    # switching flips off changes nothing else
    assert all(map(torch.equal, draw(3, window)[:3], draw(3, dataclasses.replace(window, flip=False))[:3]))


def test_nothing_is_read_back_and_no_shape_depends_on_values() -> None:
    images = colors()
    # tensors without values: code that asks for one fails
    names = ("pixels", "starts", "heights", "widths")
    source = dataclasses.replace(images, **{name: getattr(images, name).to("meta") for name in names})
    positions = torch.zeros(5, dtype=torch.int64, device="meta")
    draws = WindowDraws(*(each.to("meta") for each in unscaled(5)))
    grid = grid_of(source, positions, Window(10, 12), draws)
    assert windows.images(source, positions, grid).shape == (5, 3, 10, 12)


def test_images_suit_nets_that_want_channels_last() -> None:
    images = colors()
    positions = torch.arange(4)
    grid = grid_of(images, positions, Window(10, 12), unscaled(4))
    assert windows.images(images, positions, grid).is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("wrong", [{"height": 0}, {"width": -1}, {"scale": (0.0, 1.0)}, {"scale": (1.5, 0.5)}])
def test_impossible_windows_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        Window(**{"height": 8, "width": 8, **wrong})  # type: ignore[arg-type]
