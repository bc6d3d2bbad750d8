import pytest
import torch
from torch import Tensor

from dmt.data.pixels import color_views
from dmt.data.pixels.color_views import ColorDraws


def draws(count: int = 4, **fields: float) -> ColorDraws:
    """Those that change nothing, but for the fields named."""
    same = {"brightness": 1.0, "contrast": 1.0, "saturation": 1.0, "hue": 0.0, "sigma": 0.0}
    return ColorDraws(**{name: torch.full((count,), value) for name, value in (same | fields).items()})


def photos(muted: bool = False) -> Tensor:
    images = torch.rand(4, 3, 17, 23, generator=torch.Generator().manual_seed(1))
    return 0.45 + 0.1 * images if muted else images


def test_identity_gives_the_image_back() -> None:
    images = photos().contiguous(memory_format=torch.channels_last)
    same = color_views.apply(images, draws())
    torch.testing.assert_close(same, images, atol=1e-5, rtol=0)
    assert same.is_contiguous(memory_format=torch.channels_last)


def test_no_saturation_is_gray() -> None:
    gray = color_views.apply(photos(), draws(saturation=0.0))
    torch.testing.assert_close(gray, color_views.luma(photos()).expand_as(gray), atol=1e-5, rtol=0)
    turned = color_views.apply(photos(), draws(saturation=0.0, hue=0.2))  # gray has no hue to turn
    torch.testing.assert_close(turned, gray, atol=1e-5, rtol=0)


def test_brightness_and_contrast_by_hand() -> None:
    images = photos(muted=True)
    torch.testing.assert_close(color_views.apply(images, draws(brightness=0.6)), 0.6 * images, atol=1e-5, rtol=0)
    mean = color_views.luma(images).mean((2, 3), keepdim=True)
    expected = mean + 1.4 * (images - mean)
    torch.testing.assert_close(color_views.apply(images, draws(contrast=1.4)), expected, atol=1e-5, rtol=0)
    assert float(color_views.apply(photos(), draws(brightness=1.5, contrast=1.5)).max()) <= 1.0


def test_a_turn_of_the_hue_keeps_the_luma() -> None:
    images = photos(muted=True)
    turned = color_views.apply(images, draws(hue=0.2))
    torch.testing.assert_close(color_views.luma(turned), color_views.luma(images), atol=1e-5, rtol=0)
    assert float((turned - images).abs().max()) > 0.02
    torch.testing.assert_close(color_views.apply(turned, draws(hue=-0.2)), images, atol=1e-4, rtol=0)
    torch.testing.assert_close(color_views.apply(images, draws(hue=1.0)), images, atol=1e-4, rtol=0)


@pytest.mark.parametrize("sigma", [0.1, 0.7, 2.0])
def test_a_blur_keeps_what_is_constant_and_spreads_a_point(sigma: float) -> None:
    flat = torch.full((4, 3, 12, 15), 0.3)
    torch.testing.assert_close(color_views.apply(flat, draws(sigma=sigma)), flat, atol=1e-5, rtol=0)
    point = torch.zeros(4, 3, 21, 21)
    point[:, :, 10, 10] = 1.0
    spread = color_views.apply(point, draws(sigma=sigma))
    torch.testing.assert_close(spread.sum((2, 3)), torch.ones(4, 3), atol=1e-4, rtol=0)
    torch.testing.assert_close(spread, spread.flip(3).transpose(2, 3), atol=1e-6, rtol=0)
    offsets = torch.arange(-4, 5).float()
    bell = torch.exp(-(offsets**2) / (2 * sigma**2))
    torch.testing.assert_close(spread[0, 0, 10, 6:15] / spread[0, 0, 10, 10], bell, atol=1e-3, rtol=1e-3)


def test_every_image_has_colors_of_its_own() -> None:
    some = draws()._replace(brightness=torch.tensor([1.0, 0.5, 1.0, 1.0]), sigma=torch.tensor([0.0, 0.0, 2.0, 0.0]))
    changed = color_views.apply(photos(), some)
    same = [bool(torch.allclose(one, other, atol=1e-5)) for one, other in zip(changed, photos(), strict=True)]
    assert same == [True, False, False, True]
    for number in (1, 2):
        alone = color_views.apply(
            photos()[number : number + 1], ColorDraws(*(each[number : number + 1] for each in some))
        )
        torch.testing.assert_close(changed[number], alone[0], atol=1e-5, rtol=0)


def test_draws_come_as_often_and_as_strong_as_said() -> None:
    found = color_views.draw(4000, torch.Generator().manual_seed(1), "cpu")
    for factors, reach in ((found.brightness, 0.5), (found.contrast, 0.5), (1 + found.hue, 0.25)):
        assert float((factors != 1).float().mean()) == pytest.approx(0.8, abs=0.03)
        assert float(factors.min()) == pytest.approx(1 - reach, abs=0.01)
        assert float(factors.max()) == pytest.approx(1 + reach, abs=0.01)
    assert float((found.saturation == 0).float().mean()) == pytest.approx(0.2, abs=0.03)
    assert float(found.saturation[found.saturation > 0].min()) == pytest.approx(0.5, abs=0.01)
    assert float((found.sigma > 0).float().mean()) == pytest.approx(0.5, abs=0.03)
    assert float(found.sigma.max()) == pytest.approx(2.0, abs=0.01)
