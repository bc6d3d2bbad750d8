"""DeepLab-v2: the stride, the dilations, the sum, and the precision of its logits."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from dmt.errors import ConfigError
from dmt.models import build
from dmt.models.build import NetSpec, Normalized
from dmt.models.deeplab import DeepLab, DilatedSum
from dmt.types import Normalization

COLOR = Normalization((0.5, 0.4, 0.3), (0.2, 0.2, 0.2))


def make(name: str, classes: int = 5, channels: int = 3) -> Normalized:
    return build.build(NetSpec(name, classes, (channels, 64, 64), COLOR, pixels=True), seed=1)


@pytest.fixture(scope="module")
def small() -> Any:
    return make("deeplab2:resnet10t").body.eval()


@pytest.mark.parametrize(
    ("size", "features"), [((321, 321), (41, 41)), ((505, 505), (64, 64)), ((256, 512), (32, 64)), ((64, 96), (8, 12))]
)
def test_features_are_an_eighth_and_logits_whole(
    small: DeepLab, size: tuple[int, int], features: tuple[int, int]
) -> None:
    with torch.no_grad():
        images = torch.rand(1, 3, *size)
        assert small.encoder(images)[-1].shape[-2:] == features
        assert small(images).shape == (1, 5, *size)


def test_resnet101_has_the_dilations_of_deeplab() -> None:
    encoder: Any = make("deeplab2:resnet101").body.encoder
    assert [block.conv2.dilation[0] for block in encoder.layer3] == [1] + [2] * 22
    assert [block.conv2.dilation[0] for block in encoder.layer4] == [2, 4, 4]
    for layer in (encoder.layer3, encoder.layer4):
        assert all(conv.stride == (1, 1) for conv in layer.modules() if isinstance(conv, nn.Conv2d))
    assert encoder.layer2[0].conv1.stride == (1, 1)  # the stride sits on the 3×3 convolution
    assert encoder.layer2[0].conv2.stride == (2, 2)
    assert encoder.feature_info.channels() == [2048]
    assert not any("fc" in name for name, _ in encoder.named_parameters())


def test_the_head_is_the_sum_of_its_branches_and_all_learn() -> None:
    torch.manual_seed(0)
    head = DilatedSum(8, 3, (6, 12, 18, 24))
    features = torch.randn(2, 8, 50, 50)
    expected = torch.zeros(2, 3, 50, 50)
    for number, dilation in enumerate((6, 12, 18, 24)):
        weight, bias = (head.get_parameter(f"branches.{number}.{kind}") for kind in ("weight", "bias"))
        expected += F.conv2d(features, weight, bias, padding=dilation, dilation=dilation)
    torch.testing.assert_close(head(features), expected)
    head(features).square().sum().backward()
    assert all(parameter.grad is not None and bool(parameter.grad.any()) for parameter in head.parameters())
    assert len(list(head.parameters())) == 8  # four of them with bias


def test_two_branches_as_in_the_papers_code() -> None:
    body: Any = make("deeplab2x2:resnet10t").body
    assert [branch.dilation[0] for branch in body.head.branches] == [6, 12]


def test_a_stride_of_16_halves_the_dilation_of_the_branches() -> None:
    body: Any = make("deeplab2:resnet10t@16").body
    assert [branch.dilation[0] for branch in body.head.branches] == [3, 6, 9, 12]
    with torch.no_grad():
        assert body.encoder(torch.rand(1, 3, 65, 65))[-1].shape[-2:] == (5, 5)
    with pytest.raises(ConfigError, match="8 or 16, not 4"):
        make("deeplab2:resnet10t@4")


def test_upsampling_keeps_the_corners(small: DeepLab) -> None:
    with torch.no_grad():
        images = torch.rand(1, 3, 65, 65)
        coarse = small.head(small.encoder(images)[-1])  # (1, 5, 9, 9)
        logits = small(images)
    torch.testing.assert_close(logits[..., ::8, ::8], coarse)


def test_logits_are_float32_under_autocast(small: DeepLab) -> None:
    images = torch.rand(1, 3, 64, 64)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        features = small.encoder(F.pad(images, (0, 1, 0, 1)))[-1]
        logits = small(images)
    assert features.dtype == torch.bfloat16
    assert logits.dtype == torch.float32
    with torch.no_grad():
        by_hand = F.interpolate(small.head(features.float()), size=(65, 65), mode="bilinear", align_corners=True)
    torch.testing.assert_close(logits, by_hand[..., :64, :64])
    assert not torch.equal(logits, logits.bfloat16().float())


def test_gray_images_and_the_encoders_own_normalization() -> None:
    net = make("deeplab2:tf_efficientnet_lite0", channels=1).eval()
    assert net.mean.flatten().tolist() == net.std.flatten().tolist() == [0.5]  # timm's for this encoder
    assert net(torch.rand(1, 1, 33, 47)).shape == (1, 5, 33, 47)
    torch.testing.assert_close(make("deeplab2:resnet10t").mean.flatten(), torch.tensor([0.485, 0.456, 0.406]))


@pytest.mark.parametrize("encoder", ["vgg11", "vit_tiny_patch16_224", "swin_tiny_patch4_window7_224"])
def test_encoders_that_cannot_dilate_are_refused(encoder: str) -> None:
    with pytest.raises(ConfigError, match=f"'{encoder}' cannot give features at stride 8; choose") as caught:
        make(f"deeplab2:{encoder}")
    assert "\n" not in str(caught.value)
