"""The Wide ResNet of the paper's code, checked on the net itself."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmt.models.wide_resnet import Block, WideResNet


def test_wrn_28_2_has_the_published_number_of_parameters() -> None:
    assert sum(p.numel() for p in WideResNet(28, 2, classes=10).parameters()) == 1_467_610


def test_shortcut_takes_the_activated_input_and_identity_the_raw_one() -> None:
    torch.manual_seed(0)
    for width_in, width, stride in ((16, 32, 1), (32, 64, 2), (32, 32, 1)):
        block = Block(width_in, width, stride).eval()
        nn.init.uniform_(block.norm1.bias, -1, 1)
        x = torch.randn(2, width_in, 8, 8)
        with torch.no_grad():
            activated = F.relu(block.norm1(x))
            residual = block.conv2(F.relu(block.norm2(block.conv1(activated))))
            shortcut = x if block.shortcut is None else block.shortcut(activated)
            torch.testing.assert_close(block(x), residual + shortcut)
            assert (block.shortcut is None) == (width_in == width)
            assert not torch.allclose(activated, x)


def test_shapes_strides_and_plain_relu() -> None:
    net = WideResNet(28, 2, classes=10).eval()
    sizes: list[tuple[int, int]] = []
    for block in net.blocks:
        block.register_forward_hook(lambda _, __, out: sizes.append((out.shape[1], out.shape[2])))
    assert net(torch.rand(2, 3, 32, 32)).shape == (2, 10)
    assert sizes == [(32, 32)] * 4 + [(64, 16)] * 4 + [(128, 8)] * 4
    kinds = {type(module) for module in net.modules()}
    assert not kinds & {nn.LeakyReLU, nn.Dropout}
    assert all(module.bias is None for module in net.modules() if isinstance(module, nn.Conv2d))
    norms = [module for module in net.modules() if isinstance(module, nn.BatchNorm2d)]
    assert all((norm.eps, norm.momentum) == (1e-5, 0.1) for norm in norms)


def test_negative_features_are_cut_not_leaked() -> None:
    net = WideResNet(10, 1, classes=2).eval()
    nn.init.constant_(net.norm.weight, 0.0)
    nn.init.constant_(net.norm.bias, -1.0)  # all features negative before the last ReLU
    torch.testing.assert_close(net(torch.rand(1, 3, 32, 32)), torch.zeros(1, 2))


def test_initialization() -> None:
    torch.manual_seed(0)
    net = WideResNet(28, 2, classes=10)
    for conv in (module for module in net.modules() if isinstance(module, nn.Conv2d)):
        expected = math.sqrt(2.0 / (conv.out_channels * conv.kernel_size[0] ** 2))
        assert conv.weight.std().item() == pytest.approx(expected, rel=0.15)
    assert torch.equal(net.head.bias, torch.zeros(10))
    assert net.head.weight.abs().max().item() <= 1 / math.sqrt(128)


def test_every_parameter_gets_gradient() -> None:
    net = WideResNet(10, 2, classes=3)
    loss: Tensor = net(torch.rand(4, 3, 32, 32)).square().sum()
    loss.backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is not None and bool(p.grad.abs().sum() > 0) for p in net.parameters())


@pytest.mark.parametrize("depth", [4, 9, 27])
def test_impossible_depths_are_refused(depth: int) -> None:
    with pytest.raises(ValueError, match="6n"):
        WideResNet(depth, 2, classes=10)
