"""Nets of segmentation-models-pytorch behind our names."""

import sys
from typing import Any

import pytest
import torch

from dmt.errors import ConfigError
from dmt.models import build
from dmt.models.build import NetSpec, Normalized
from dmt.types import Normalization

COLOR = Normalization((0.5, 0.4, 0.3), (0.2, 0.2, 0.2))


def make(name: str, channels: int = 3) -> Normalized:
    return build.build(NetSpec(name, 4, (channels, 64, 64), COLOR, pixels=True), seed=1)


@pytest.mark.parametrize(("name", "channels"), [("smp:unet/resnet18", 3), ("smp:fpn/tu-resnet10t", 1)])
@pytest.mark.parametrize("size", [(64, 32), (65, 45)])
def test_any_size(name: str, channels: int, size: tuple[int, int]) -> None:
    net = make(name, channels).eval()
    with torch.no_grad():
        assert net(torch.rand(2, channels, *size)).shape == (2, 4, *size)
    expected = torch.tensor([0.485, 0.456, 0.406] if channels == 3 else [0.449])
    torch.testing.assert_close(net.mean.flatten(), expected)


def test_padding_is_cropped_back_in_place() -> None:
    body: Any = make("smp:unet/resnet18").body.eval()
    images = torch.rand(1, 3, 40, 50)
    padded = torch.zeros(1, 3, 64, 64)
    padded[..., :40, :50] = images
    with torch.no_grad():
        torch.testing.assert_close(body(images), body.net(padded)[..., :40, :50])


def test_logits_are_float32_under_autocast() -> None:
    net = make("smp:unet/resnet18").eval()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        logits = net(torch.rand(1, 3, 32, 32))
    assert logits.dtype == torch.float32
    assert not torch.equal(logits, logits.bfloat16().float())


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("smp:unett/resnet18", "unknown smp architecture 'unett'; did you mean 'unet'"),
        ("smp:unet/resnet19", "unknown smp encoder 'resnet19'; did you mean"),
        ("smp:unet/tu-resnet19", "did you mean 'tu-resnet18'"),
        ("smp:unet", "unknown smp encoder ''; choose from"),
        ("smp:pan/vgg11", "try another encoder"),
    ],
)
def test_unknown_names_are_one_line(name: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        make(name)
    assert "\n" not in str(caught.value)


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "segmentation_models_pytorch", None)
    with pytest.raises(ConfigError, match=r"pip install 'dmt-vision\[smp\]'"):
        make("smp:unet/resnet18")
