"""Nets of timm of every build, with random parameters: convolutions, transformers, patches of 14 pixels."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from dmt import files
from dmt.errors import ConfigError
from dmt.fitting import run
from dmt.models import build, positions, starts
from dmt.models.build import NetSpec, Normalized
from dmt.runs.progress import Silent
from dmt.types import IMAGENET
from tests.data.folders import photo_layout

KINDS = {
    "vit_tiny_patch16_224": (32, 192),
    "vit_small_patch14_dinov2": (28, 384),
    "convnext_atto": (32, 320),
    "efficientnet_lite0": (32, 1280),
    "mobilenetv3_small_050": (32, 1024),  # its head has a layer of its own before the classifier
}
"""Name -> side of images, features."""


def make(name: str, size: int, classes: int = 5) -> tuple[Normalized, NetSpec]:
    spec = NetSpec(name, classes, (3, size, size), IMAGENET)
    return build.build(spec, seed=1), spec


def changed(net: Normalized, before: dict[str, Tensor]) -> set[str]:
    return {name for name, parameter in net.named_parameters() if not torch.equal(parameter, before[name])}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("frozen", [True, False])
def test_a_step_moves_what_learns(name: str, frozen: bool, generator: torch.Generator) -> None:
    size, features = KINDS[name]
    net, _ = make(f"{'frozen' if frozen else 'timm'}:{name}", size)
    before = {key: parameter.detach().clone() for key, parameter in net.named_parameters()}
    optimizer = torch.optim.SGD([each for each in net.parameters() if each.requires_grad], 0.1)
    logits = net.train()(torch.rand(4, 3, size, size, generator=generator))
    assert logits.shape == (4, 5)
    torch.nn.functional.cross_entropy(logits, torch.arange(4)).backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    moved = changed(net, before)
    if frozen:
        body: Any = net.body
        assert body.head[1].in_features == features
        assert moved == {"body.head.1.weight", "body.head.1.bias"}
    else:
        assert len(moved) > 0.9 * len(before)


# --- patches ---


@pytest.mark.parametrize(("size", "says"), [(128, "size=126 or size=140"), (32, "size=28 or size=42"), (8, "size=14")])
def test_images_come_in_whole_patches(size: int, says: str) -> None:
    with pytest.raises(ConfigError, match=f"patches of 14 pixels, and {size} is no multiple.*{says}") as caught:
        make("frozen:vit_small_patch14_dinov2", size)
    assert "\n" not in str(caught.value)


def test_a_run_says_which_size_to_set(tmp_path: Path) -> None:
    photos = photo_layout.write_classes(tmp_path / "photos", labeled=2, unlabeled=4)
    settings = {"net": "timm:vit_small_patch14_dinov2", "size": 32}
    with pytest.raises(ConfigError, match="size=28 or size=42"):
        run.fit(photos, out=tmp_path / "run", settings=settings, watcher=Silent(), device="cpu")
    settings |= {"net": "timm:crossvit_tiny_240"}  # its sizes depend on two kinds of patches
    with pytest.raises(ConfigError, match=r"does not take images.*its published size is 240 \(--set size=240\)"):
        run.fit(photos, out=tmp_path / "run", settings=settings, watcher=Silent(), device="cpu")
    settings |= {"net": "timm:nest_tiny_jx"}  # blocks of patches, which must come out even too
    with pytest.raises(ConfigError, match=r"cannot be built for images of 40 × 40: .* \(--set size=224\)"):
        run.fit(photos, out=tmp_path / "run", settings=settings | {"size": 40}, watcher=Silent(), device="cpu")
    assert not (tmp_path / "run").exists()


# --- starts ---


@pytest.mark.parametrize(("name", "prefix"), [("test_vit", 1), ("vit_dwee_patch16_reg1_gap_256", 0)])
def test_positions_of_another_size_are_interpolated(name: str, prefix: int, tmp_path: Path) -> None:
    published = make(f"timm:{name}", 96)[0].body
    files.write_tensors(tmp_path / "vit.safetensors", published.state_dict())
    net, spec = make(f"frozen:{name}", 64)
    start = starts.resolve(str(tmp_path / "vit.safetensors"), spec.name)
    assert "not filled" not in starts.load(net, spec, start)
    own, given = (each.state_dict() for each in (net.body, published))
    assert torch.equal(own["encoder.blocks.0.attn.qkv.weight"], given["blocks.0.attn.qkv.weight"])
    assert own["encoder.pos_embed"].shape[1] == prefix + 16
    assert torch.equal(own["encoder.pos_embed"][:, :prefix], given["pos_embed"][:, :prefix])
    means = [each[:, prefix:].mean(1) for each in (own["encoder.pos_embed"], given["pos_embed"])]
    torch.testing.assert_close(*means, atol=0.02, rtol=0.0)


def test_positions_that_fit_and_nets_without_any_are_left_alone() -> None:
    vit, convolutions = make("timm:test_vit", 32)[0].body, make("timm:convnext_atto", 32)[0].body
    tensors = {"pos_embed": torch.rand(1, 5, 64), "norm.weight": torch.rand(64)}
    assert positions.resampled(tensors, vit) == tensors
    tensors["pos_embed"] = torch.rand(1, 8, 64)  # no square
    assert positions.resampled(tensors, vit) == tensors
    assert positions.resampled(tensors, convolutions) == tensors
