"""Every kind of pixel net draws what it sees where it sees it, at every size."""

import functools

import pytest
import torch
from torch import Tensor, nn

from dmt.models import alignment, build
from dmt.models.alignment import GrowBy
from dmt.models.build import NetSpec
from dmt.types import Normalization

KINDS = (
    "fcn-4",
    "deeplab2:resnet18",
    "deeplab2:tf_efficientnet_lite0",  # TensorFlow's "same" padding
    "deeplab2:resnet18@16",
    "deeplab2:tf_efficientnet_lite0@16",
    "deeplab2x2:resnet18",
    "fpn:resnet18",
    "fpn:tf_efficientnet_lite0",
    "smp:unet/resnet18",
    "smp:fpn/resnet18",
    "smp:deeplabv3plus/resnet18",
    "smp:pspnet/resnet18",
    "smp:linknet/resnet18",
)
SIZES = (64, 65, 100, 128, 161)
"""A multiple of every stride, one more, and between; two of them twice, as what drifts may do so with the distance."""
MARGIN = 16
"""How far from the border a pattern lies, in pixels."""


@functools.cache
def plain_net(name: str) -> nn.Module:
    """A net whose every kernel passes on what is at its center: all that is left of it is its geometry."""
    net = build.build(NetSpec(name, 2, (3, 64, 64), Normalization((0.0,) * 3, (1.0,) * 3), pixels=True), seed=1)
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            centers = [side // 2 for side in module.kernel_size]
            with torch.no_grad():
                module.weight.zero_()[..., centers[0], centers[1]] = 1.0 / module.weight.shape[1]
                if module.bias is not None:
                    module.bias.zero_()
    return net.body.eval()


def seen(net: nn.Module, size: int, center: int) -> tuple[float, float]:
    """(row, column) at which a spot drawn around pixel (center, center) comes out."""
    axis = torch.arange(size).float()
    bump = torch.exp(-0.5 * ((axis - center) / 5.0) ** 2)
    bump[bump < 1e-4] = 0.0  # numbers near the smallest of all take a CPU many times as long
    with torch.no_grad():
        logits: Tensor = net((bump[:, None] * bump).expand(1, 3, size, size))[0].sum(0)
    near = slice(max(0, center - MARGIN), center + MARGIN + 1)
    spot = logits[near, near] - logits[near, near].min()
    places = axis[near]
    return float((spot.sum(1) * places).sum() / spot.sum()), float((spot.sum(0) * places).sum() / spot.sum())


@pytest.mark.parametrize("name", KINDS)
def test_what_lies_at_the_far_border_is_drawn_like_what_lies_at_the_near_one(name: str) -> None:
    net = plain_net(name)
    for size in SIZES:
        near, far = MARGIN, size - 1 - MARGIN - (size - 1 - 2 * MARGIN) % 32  # equal phase of every stride
        offsets = [[place - center for place in seen(net, size, center)] for center in (near, far)]
        for first, last in zip(*offsets, strict=True):
            # PSPNet blends in pooled context, drawn around the middle of the padded image: not a drift
            assert abs(last - first) <= (0.6 if "pspnet" in name else 0.5), f"{name} at {size} pixels: {offsets}"


@pytest.mark.parametrize("name", [name for name in KINDS if not name.startswith("smp:")])
def test_our_own_nets_do_not_shift_at_all(name: str) -> None:
    net = plain_net(name)
    for size in SIZES:
        center = size // 32 * 16  # a feature lies there, so that a coarse grid does not blur the question
        for place in seen(net, size, center):
            assert abs(place - center) <= 0.5, f"{name} at {size} pixels"


@pytest.mark.parametrize(("features", "size"), [((5, 9), (33, 65)), ((3, 2), (17, 9)), ((1, 4), (1, 25))])
def test_growing_by_products_is_growing(features: tuple[int, int], size: tuple[int, int]) -> None:
    values = torch.randn(2, 3, *features, dtype=torch.float64)
    torch.testing.assert_close(alignment.by_products(values, size), alignment.grow(values, size))


def test_growing_by_a_factor_puts_feature_i_on_pixel_si() -> None:
    features = torch.rand(1, 2, 5, 6)
    grown = GrowBy(4)(features)
    assert grown.shape == (1, 2, 20, 24)
    torch.testing.assert_close(grown[..., ::4, ::4], features)
    torch.testing.assert_close(grown[..., 17:, ::4], features[..., 4:, :].expand(1, 2, 3, 6))
