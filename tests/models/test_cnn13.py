"""CNN-13, checked on the net itself."""

import copy

import pytest
import torch
from torch import nn

from dmt.core.ema import SlowCopy
from dmt.errors import ConfigError
from dmt.models.build import NetSpec, build
from dmt.models.cnn13 import CNN13
from dmt.types import Normalization

COLOR = Normalization((0.5,) * 3, (0.25,) * 3)


def test_layers_are_those_that_were_published() -> None:
    net = CNN13(classes=10).eval()
    convs = [module for module in net.modules() if isinstance(module, nn.Conv2d)]
    assert [conv.out_channels for conv in convs] == [128, 128, 128, 256, 256, 256, 512, 256, 128]
    assert [conv.kernel_size[0] for conv in convs] == [3] * 7 + [1, 1]
    sizes: list[int] = []
    for conv in convs:
        conv.register_forward_hook(lambda _, __, out: sizes.append(out.shape[-1]))
    with torch.no_grad():
        assert net(torch.rand(2, 3, 32, 32)).shape == (2, 10)
    assert sizes == [32] * 3 + [16] * 3 + [6] * 3
    assert sum(isinstance(module, nn.Dropout) for module in net.modules()) == 2
    assert {m.negative_slope for m in net.modules() if isinstance(m, nn.LeakyReLU)} == {0.1}


def test_weights_are_a_length_times_a_direction() -> None:
    """Scaling what is learned of a direction changes nothing; scaling its length does."""
    torch.manual_seed(0)
    net = CNN13(classes=3).eval()
    images = torch.rand(1, 3, 12, 12)
    head = net.head.parametrizations["weight"]
    with torch.no_grad():
        before = net(images)
        head.original1.mul_(3.0)
        torch.testing.assert_close(net(images), before)
        head.original0.mul_(3.0)
        bias = net.head.bias
        torch.testing.assert_close(net(images) - bias, 3 * (before - bias), rtol=1e-4, atol=1e-6)
    names = [name for name, _ in net.named_parameters() if name.endswith("original1")]
    assert len(names) == 10


def test_copies_are_nets_of_their_own() -> None:
    net = build(NetSpec("cnn13", 3, (3, 12, 12), COLOR), seed=1).eval()
    twin, slow = copy.deepcopy(net), SlowCopy(net, 0.9)
    images = torch.rand(2, 3, 12, 12)
    with torch.no_grad():
        before = net(images)
        for parameter in net.parameters():
            parameter.add_(0.1)
        assert not torch.allclose(net(images), before)
        torch.testing.assert_close(twin(images), before)
        torch.testing.assert_close(slow.net(images), before)
    twin.load_state_dict(net.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(twin(images), net(images))


def test_smaller_images_are_refused_in_one_line() -> None:
    with pytest.raises(ConfigError, match="12 pixels or more, not 8") as caught:
        build(NetSpec("cnn13", 10, (1, 8, 8), Normalization((0.5,), (0.5,))), seed=1)
    assert "\n" not in str(caught.value)
