"""Blocks that a net repeats."""

import copy

import torch
from torch import Tensor, nn

from dmt.core import blocks
from dmt.models import build
from dmt.models.build import NetSpec
from dmt.types import IMAGENET


class Block(nn.Module):
    """A small residual block."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.second, self.last = nn.Conv2d(4, 4, 1), nn.ReLU()

    def forward(self, images: Tensor) -> Tensor:
        return images + self.last(self.second(self.norm(self.first(images))))  # type: ignore[no-any-return]


def test_blocks_of_a_resnet_are_those_of_its_layers() -> None:
    net = build.build(NetSpec("deeplab2:resnet26", 3, (3, 32, 32), IMAGENET, pixels=True), seed=1)
    found = list(blocks.repeated(net))
    assert {type(block).__name__ for block in found} == {"Bottleneck"}
    assert len(found) == 8


def test_equal_blocks_share_compiled_code_and_a_closed_net_is_plain() -> None:
    compiled = 0

    def backend(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> object:
        nonlocal compiled
        compiled += 1
        return graph.forward

    net = nn.Sequential(Block(), Block(), Block()).eval()
    names, images = list(net.state_dict()), torch.rand(1, 4, 8, 8)
    with torch.no_grad():
        expected = net(images)
        for block in blocks.repeated(net):
            block.compile(backend=backend, dynamic=False)
        torch.testing.assert_close(net(images), expected)
        assert compiled == 1
        copy.deepcopy(net)(torch.rand(1, 4, 9, 9))  # a copy is plain: nothing new was compiled
        blocks.plain(net)
        net(torch.rand(1, 4, 7, 7))
    assert compiled == 1
    assert list(net.state_dict()) == names
