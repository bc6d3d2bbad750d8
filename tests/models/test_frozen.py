from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import dmt
from dmt import files
from dmt.core import batchnorm
from dmt.errors import ConfigError
from dmt.models.build import NetSpec, build
from dmt.runs.progress import Silent
from dmt.types import Normalization
from tests.conftest import TINY

SPEC = NetSpec("frozen:resnet18", 10, (1, 8, 8), Normalization((0.5,), (0.5,)))


def test_only_the_last_layer_learns(generator: torch.Generator) -> None:
    net = build(SPEC, seed=1).train()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    assert {name for name, parameter in net.named_parameters() if parameter.requires_grad} == {
        "body.head.1.weight",
        "body.head.1.bias",
    }
    logits = net(torch.rand(4, 1, 8, 8, generator=generator))
    logits.logsumexp(1).sum().backward()
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, weight_decay=0.1)
    optimizer.step()
    changed = {name for name, tensor in net.state_dict().items() if not torch.equal(tensor, before[name])}
    assert changed == {f"body.head.{name}" for name in ("0.running_mean", "0.running_var", "0.num_batches_tracked",
                                                        "1.weight", "1.bias")}  # fmt: skip


def test_an_image_is_seen_alike_in_training_and_outside(generator: torch.Generator) -> None:
    net = build(SPEC, seed=1)
    images = torch.rand(4, 1, 8, 8, generator=generator)
    encoder = net.body.encoder
    assert isinstance(encoder, nn.Module)
    outside = encoder(images)
    net.train()
    assert torch.equal(encoder(images), outside)
    with batchnorm.statistics_untouched(net):  # as when a batch is weighed
        assert torch.equal(encoder(images), outside)


def test_all_of_a_tuned_net_learns_but_what_its_batchnorm_knows(generator: torch.Generator) -> None:
    net = build(replace(SPEC, name="tuned:resnet18"), seed=1).train()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    assert before.keys() == build(SPEC, seed=1).state_dict().keys()  # a start fills one as it fills the other
    net(torch.rand(4, 1, 8, 8, generator=generator)).logsumexp(1).sum().backward()
    torch.optim.SGD(net.parameters(), 0.1).step()
    changed = {name for name, tensor in net.state_dict().items() if not torch.equal(tensor, before[name])}
    assert {"body.encoder.conv1.weight", "body.encoder.bn1.weight", "body.head.1.weight"} < changed
    assert not {name for name in changed if name.startswith("body.encoder.") and "running" in name}
    assert all(parameter.requires_grad for parameter in net.parameters())


@pytest.mark.parametrize("start", [None, "random"])
def test_it_needs_a_start(start: str | None, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match="the encoder of net 'frozen:resnet18' is frozen and needs pretrained parameters"
    ):
        dmt.fit("digits", out=tmp_path / "run", settings={"net": "frozen:resnet18"}, start=start, watcher=Silent())
    assert not (tmp_path / "run").exists()


def test_a_run_starts_from_a_file_and_keeps_its_encoder(tmp_path: Path) -> None:
    encoder = build(NetSpec("timm:resnet18", 5, (3, 8, 8), Normalization((0.5,) * 3, (0.5,) * 3)), seed=3).body
    files.write_tensors(tmp_path / "r18.safetensors", encoder.state_dict())
    settings = TINY | {"net": "frozen:resnet18", "epochs": 2, "epochs_round": 1, "fractions": "1"}
    start = str(tmp_path / "r18.safetensors")
    dmt.fit("digits", out=tmp_path / "run", settings=settings, start=start, baseline=False, watcher=Silent())
    kept = encoder.state_dict()["layer4.1.conv2.weight"]
    nets = sorted((tmp_path / "run").glob("stages/*/step-*/*-raw.safetensors"))
    assert len(nets) == 2
    for path in nets:
        assert torch.equal(files.read_tensors(path)["body.encoder.layer4.1.conv2.weight"], kept)
