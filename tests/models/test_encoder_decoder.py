"""Nets for pixels in two halves."""

import pytest
import torch
from torch import Tensor, nn

from dmt.errors import ConfigError
from dmt.models import build, registered
from dmt.models.build import NetSpec
from dmt.types import FeatureMap, Normalization

COLOR = Normalization((0.5, 0.4, 0.3), (0.2, 0.2, 0.2))
STRIDES = {
    "fcn-4": (1, 2, 4),
    "deeplab2:resnet10t": (8,),
    "deeplab2:resnet10t@16": (16,),
    "fpn:resnet10t": (4, 8, 16, 32),
    "smp:pspnet/resnet18": (1, 2, 4, 8),
    "smp:unet/resnet18": (1, 2, 4, 8, 16, 32),
}


def spec(name: str) -> NetSpec:
    return NetSpec(name, 4, (3, 64, 64), COLOR, pixels=True)


@pytest.mark.parametrize("name", STRIDES)
def test_both_halves_make_the_whole(name: str) -> None:
    net, images = build.build(spec(name), seed=1).eval(), torch.rand(2, 3, 45, 38)
    with torch.no_grad():
        whole, features = net(images), net.features(images)
        assert whole.shape == (2, 4, 45, 38)
        assert torch.equal(net.decode(features, (45, 38)), whole)
        changed = net.decode(tuple(0 * each for each in features), (45, 38))
    assert not torch.allclose(changed, whole)
    maps = build.feature_maps(net, spec(name))
    assert [each.stride for each in maps] == list(STRIDES[name])
    assert [each.width for each in maps] == [each.shape[1] for each in features]
    assert not net.training


def test_all_features_reach_the_logits_of_a_small_net() -> None:
    net = build.build(spec("fcn-4"), seed=1)
    features = tuple(each.detach().requires_grad_() for each in net.features(torch.rand(2, 3, 32, 32)))
    net.decode(features, (32, 32)).square().sum().backward()  # type: ignore[no-untyped-call]
    assert all(each.grad is not None and each.grad.abs().sum() > 0 for each in features)
    assert build.feature_maps(net, spec("fcn-4"))[0] == FeatureMap(4, 1)


def test_other_nets_are_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Whole(nn.Conv2d):
        def forward(self, images: Tensor) -> Tensor:
            return super().forward(images)

    monkeypatch.setitem(registered.OWN, "whole", lambda classes, channels: Whole(channels, classes, 1))
    own = build.build(spec("whole"), seed=1)
    with pytest.raises(ConfigError, match=r"net 'whole' cannot be asked for features.*take fcn-W") as caught:
        build.feature_maps(own, spec("whole"))
    assert "\n" not in str(caught.value)
