"""The feature-pyramid net: where features lie, what reaches the logits, their precision, and the frozen encoder."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import dmt
from dmt import files
from dmt.core import batchnorm
from dmt.errors import ConfigError
from dmt.models import build, onnx_encoder, starts
from dmt.models.build import NetSpec, Normalized
from dmt.models.fpn import FPN, STRIDES
from dmt.runs.progress import Silent
from dmt.runs.stopping import Stop, Stopped
from dmt.types import Normalization
from tests.conftest import TINY_PIXELS

COLOR = Normalization((0.5, 0.4, 0.3), (0.2, 0.2, 0.2))


def make(name: str, classes: int = 5, channels: int = 3, seed: int = 1) -> Normalized:
    return build.build(NetSpec(name, classes, (channels, 64, 64), COLOR, pixels=True), seed)


@pytest.fixture(scope="module")
def small() -> Any:
    return make("fpn:resnet10t").body.eval()


@pytest.mark.parametrize(("encoder", "patches"), [("resnet10t", False), ("convnext_atto", True)])
@pytest.mark.parametrize("size", [(64, 96), (65, 33), (50, 71)])
def test_logits_of_any_size(encoder: str, patches: bool, size: tuple[int, int]) -> None:
    net: Any = make(f"fpn:{encoder}").eval()
    assert net.body.patches == patches
    with torch.no_grad():
        assert net(torch.rand(2, 3, *size)).shape == (2, 5, *size)


class Grids(nn.Module):
    """An encoder that says of every feature what the image has where the feature lies."""

    def __init__(self, patches: bool) -> None:
        super().__init__()
        self.patches = patches
        self.feature_info = SimpleNamespace(reduction=lambda: list(STRIDES), channels=lambda: [1] * len(STRIDES))

    def forward(self, images: Tensor) -> list[Tensor]:
        if self.patches:
            return [F.avg_pool2d(images, stride) for stride in STRIDES]
        return [images[..., ::stride, ::stride] for stride in STRIDES]


@pytest.mark.parametrize("patches", [False, True])
@pytest.mark.parametrize("size", [160, 161, 171])
def test_what_levels_say_of_a_place_meets_there(patches: bool, size: int) -> None:
    """On a slope every error of place shows: it comes out as the slope itself, once from each level."""
    net: Any = FPN(Grids(patches), 1, patches=patches).eval()
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            module.weight.data.zero_()[..., module.kernel_size[0] // 2, module.kernel_size[1] // 2] = (
                1 / module.in_channels
            )
    net.head.bias.data.zero_()
    slope = torch.arange(size).float().expand(1, 1, size, size)
    inside = slice(32, 128)  # away from the outer halves of patches, which repeat their middle, and from padding
    with torch.no_grad():
        logits = net(slope)
    torch.testing.assert_close(
        logits[..., inside, inside], len(STRIDES) * slope[..., inside, inside], rtol=1e-3, atol=0.01
    )


@pytest.mark.parametrize("level", range(4))
def test_every_level_reaches_the_logits_and_learns(level: int) -> None:
    net: Any = make("fpn:resnet10t").body.train()
    net(torch.rand(2, 3, 64, 64)).square().sum().backward()
    for part in (net.decoder.laterals[level], net.decoder.merges[level], net.encoder.conv1, net.head):
        assert all(parameter.grad is not None and bool(parameter.grad.any()) for parameter in part.parameters())


def test_the_encoder_is_as_published() -> None:
    encoder: Any = make("fpn:resnet18").body.encoder
    assert {conv.dilation for conv in encoder.modules() if isinstance(conv, nn.Conv2d)} == {(1, 1)}
    assert not any("fc" in name for name, _ in encoder.named_parameters())
    assert encoder.feature_info.reduction()[-1] == 32


def test_logits_are_float32_under_autocast(small: FPN) -> None:
    images = torch.rand(1, 3, 65, 65)
    seen: list[Tensor] = []
    hook = small.decoder.register_forward_hook(lambda module, given, found: seen.append(found))
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        logits = small(images)
    hook.remove()
    assert seen[0].dtype == torch.bfloat16
    assert logits.dtype == torch.float32
    with torch.no_grad():
        by_hand = F.interpolate(small.head(seen[0].float()), size=(65, 65), mode="bilinear", align_corners=True)
    torch.testing.assert_close(logits, by_hand)
    assert not torch.equal(logits, logits.bfloat16().float())


def test_gray_images_and_the_encoders_own_normalization() -> None:
    net = make("fpn:tf_efficientnet_lite0", channels=1).eval()
    assert net.mean.flatten().tolist() == net.std.flatten().tolist() == [0.5]  # timm's for this encoder
    assert net(torch.rand(1, 1, 33, 47)).shape == (1, 5, 33, 47)


@pytest.mark.parametrize(
    "encoder",
    [
        "vit_tiny_patch16_224",  # one stride
        "swin_tiny_patch4_window7_224",  # one size of image
        "poolformer_s12",  # neither at s·i nor in the middle of patches
        "densenet121",  # some levels so, some so
        "hrnet_w18_small",  # even sides only
    ],
)
def test_encoders_without_exact_grids_are_refused(encoder: str) -> None:
    with pytest.raises(ConfigError, match=f"'{encoder}' cannot give features on exact grids .*; choose") as caught:
        make(f"fpn:{encoder}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["resnet10t", "convnext_atto", "tf_efficientnet_lite0"])
def test_a_classifiers_file_fills_the_encoder(name: str, tmp_path: Path) -> None:
    """As one file does for two kinds of net on equal encoders."""
    spec = NetSpec(f"timm:{name}", 10, (3, 64, 64), COLOR)
    published = build.build(spec, seed=9).body.state_dict()
    torch.save(published, tmp_path / "net.pth")
    net = make(f"fpn:{name}")
    pixels = NetSpec(f"fpn:{name}", 5, (3, 64, 64), COLOR, pixels=True)
    line = starts.load(net, pixels, starts.resolve(f"{tmp_path / 'net.pth'}#unit", pixels.name))
    encoder: Any = net.body.encoder
    count = sum(not name.endswith("num_batches_tracked") for name in encoder.state_dict())
    assert line.startswith(f"{count} tensors of the encoder from net.pth; decoder and head random")
    assert net.mean.flatten().tolist() == [0, 0, 0]


def test_only_the_decoder_learns_on_a_frozen_encoder(generator: torch.Generator) -> None:
    net = make("frozen-fpn:resnet10t").train()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    images = torch.rand(2, 3, 64, 64, generator=generator)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, weight_decay=0.1)
    net(images).logsumexp(1).sum().backward()
    optimizer.step()
    changed = {name for name, tensor in net.state_dict().items() if not torch.equal(tensor, before[name])}
    assert changed == {name for name in before if name.startswith(("body.decoder.", "body.head."))}
    encoder: Any = net.body.encoder
    outside = encoder.eval()(images)[-1]
    net.train()
    assert torch.equal(encoder(images)[-1], outside)
    with batchnorm.statistics_untouched(net):  # as when a batch is weighed
        assert torch.equal(encoder(images)[-1], outside)
    assert any(module.training for module in net.modules())


def test_a_frozen_encoder_needs_a_start(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match="encoder of net 'frozen-fpn:resnet10t' is frozen and needs pretrained parameters"
    ):
        dmt.fit("scenes", out=tmp_path / "run", settings={"net": "frozen-fpn:resnet10t"}, watcher=Silent())
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("few_scenes")
def test_a_pair_of_two_heads_on_one_file(tmp_path: Path) -> None:
    spec = NetSpec("timm:resnet10t", 10, (3, 64, 64), COLOR)
    published = build.build(spec, seed=9).body.state_dict()
    files.write_tensors(tmp_path / "r10.safetensors", published)
    settings = TINY_PIXELS | {"net": "frozen-fpn:resnet10t", "net_b": "fpn:resnet10t", "epochs": 1}
    start = str(tmp_path / "r10.safetensors")
    dmt.fit("scenes", method="baseline", out=tmp_path / "run", settings=settings, start=start, watcher=Silent())
    nets = sorted((tmp_path / "run").glob("stages/*/step-*/*-raw.safetensors"))
    kept = [
        torch.equal(files.read_tensors(path)["body.encoder.layer4.0.conv2.weight"], published["layer4.0.conv2.weight"])
        for path in nets
    ]
    assert sorted(kept) == [False, True]


class AfterOne(Stop):
    """Stops as soon as a step is done."""

    def __call__(self) -> bool:
        return True


class Notes(Silent):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(text)


@pytest.mark.usefixtures("few_scenes")
def test_a_run_that_resumes_with_another_engine_for_its_encoder_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    published = build.build(NetSpec("timm:resnet10t", 10, (3, 64, 64), COLOR), seed=9).body.state_dict()
    files.write_tensors(tmp_path / "r10.safetensors", published)

    def resumed() -> list[str]:
        """What is told of engines by one step more."""
        notes = Notes()
        options: dict[str, Any] = {"settings": TINY_PIXELS | {"net": "frozen-fpn:resnet10t"}, "watcher": notes}
        options |= {"start": str(tmp_path / "r10.safetensors"), "device": "cpu", "stop": AfterOne()}
        with pytest.raises(Stopped):
            dmt.fit("scenes", method="baseline", baseline=False, out=tmp_path / "run", **options)
        return [line for line in notes.lines if "repeatable" in line]

    (state,) = [] if resumed() else (tmp_path / "run").glob("stages/*/state.json")
    assert files.read_json(state)["engine"] == "onnxruntime"
    assert resumed() == []
    monkeypatch.setattr(onnx_encoder, "engine", lambda: "torch")
    (line,) = resumed()
    assert "began with onnxruntime for its encoder, resumes with torch: not repeatable bit for bit" in line
    assert files.read_json(state)["engine"] == "torch"
    older = {key: value for key, value in files.read_json(state).items() if key not in ("engine", "crc32")}
    files.write_json(state, older)  # as checkpoints were before
    assert resumed() == []
