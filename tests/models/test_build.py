import subprocess
import sys

import pytest
import torch

from dmt.errors import ConfigError
from dmt.models.build import NetSpec, build, forward_share
from dmt.types import Normalization

GRAY = Normalization((0.3,), (0.4,))
COLOR = Normalization((0.5, 0.4, 0.3), (0.2, 0.2, 0.2))


@pytest.mark.parametrize(
    ("name", "shape"),
    [("wrn-10-1", (3, 32, 32)), ("resnet8-4", (1, 8, 8)), ("timm:resnet18", (3, 32, 32)),
     ("timm:vit_tiny_patch16_224", (3, 32, 32)), ("frozen:resnet18", (3, 32, 32)),
     ("frozen:mobilenetv3_small_050", (3, 32, 32)), ("frozen:vit_tiny_patch16_224", (3, 32, 32))],
)  # fmt: skip
def test_nets_by_name(name: str, shape: tuple[int, int, int]) -> None:
    spec = NetSpec(name, 7, shape, COLOR if shape[0] == 3 else GRAY)
    net = build(spec, seed=1).eval()
    assert net(torch.rand(2, *shape)).shape == (2, 7)


def test_the_seed_decides_the_net_and_nothing_else() -> None:
    spec = NetSpec("resnet8-4", 10, (1, 8, 8), GRAY)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    nets = [build(spec, seed) for seed in (1, 2, 1)]
    assert torch.equal(torch.rand(3), expected)  # the caller's stream was not touched
    first, second, again = (torch.cat([p.flatten() for p in net.parameters()]) for net in nets)
    assert torch.equal(first, again)
    assert not torch.equal(first, second)


def test_normalization_belongs_to_the_net() -> None:
    net = build(NetSpec("resnet8-4", 10, (3, 8, 8), COLOR), seed=1).eval()
    images = torch.rand(2, 3, 8, 8)
    by_hand = (images - torch.tensor(COLOR.mean).view(3, 1, 1)) / torch.tensor(COLOR.std).view(3, 1, 1)
    torch.testing.assert_close(net(images), net.body(by_hand))


@pytest.mark.parametrize(
    ("name", "says"),
    [("wrn28-2", "did you mean 'wrn-28-2'"), ("timm:resnet19", "did you mean"), ("wrn-27-2", "6n \\+ 4"),
     ("resnet8-0", "width"), ("wrn-28-0", "width")],
)  # fmt: skip
def test_unknown_nets_are_one_line(name: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        build(NetSpec(name, 10, (3, 32, 32), COLOR), seed=1)
    assert "\n" not in str(caught.value)


def test_core_needs_neither_timm_nor_torchvision() -> None:
    code = "import sys, dmt.cli; print(sorted({'timm', 'torchvision'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_torchvision_can_be_ensured_twice() -> None:
    """In a fresh process: a pair that matches is left alone, one that does not is mended; both then import."""
    code = (
        "from dmt.models import torchvision_pair as pair; pair.ensure(); pair.ensure();"
        "import torchvision; print(torchvision.__name__, len(pair._declared) <= 1)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["torchvision", "True"]


@pytest.mark.parametrize(
    ("name", "pixels", "says"),
    [("wrn-28-2", True, "labels images, this task labels pixels; use deeplab2:ENCODER"),
     ("timm:resnet18", True, "labels images"), ("fcn-16", False, "labels pixels, this task labels images; use wrn-D-K"),
     ("deeplab2:resnet18", False, "labels pixels"), ("smp:unet/resnet18", False, "labels pixels"),
     ("frozen-fpn:resnet18", False, "labels pixels"), ("fpn:resnet19", True, "did you mean 'resnet18'"),
     ("fcn16", True, "did you mean 'fcn-16'"), ("fcn-0", True, "width"),
     ("deeplab2:resnet19", True, "did you mean 'resnet18'"), ("deeplab3:resnet18", True, "did you mean 'deeplab2")],
)  # fmt: skip
def test_a_net_must_label_what_the_task_labels(name: str, pixels: bool, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        build(NetSpec(name, 10, (3, 32, 32), COLOR, pixels), seed=1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["deeplab2:resnet10t", "fpn:resnet10t", "fcn-4", "smp:unet/resnet18"])
def test_nets_for_pixels_depend_on_the_seed_alone(name: str) -> None:
    spec = NetSpec(name, 4, (3, 32, 32), COLOR, pixels=True)
    first, again, other = (build(spec, seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert any(not torch.equal(first[key], other[key]) for key in first)


def test_the_tiny_net_for_pixels_takes_the_normalization_of_the_data() -> None:
    net = build(NetSpec("fcn-4", 4, (3, 32, 32), COLOR, pixels=True), seed=1)
    torch.testing.assert_close(net.mean.flatten(), torch.tensor(COLOR.mean))


def test_nobody_goes_backward_through_a_frozen_encoder() -> None:
    assert forward_share("frozen:resnet18") == 1.0 > forward_share("frozen-fpn:resnet18") > 1 / 3  # a decoder learns
    assert {forward_share(net) for net in ("timm:resnet18", "fpn:resnet18", "wrn-28-2")} == {1 / 3}
