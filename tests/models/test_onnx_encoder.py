"""Frozen encoders by ONNX Runtime: the same features, noticed changes, and torch where that is asked for."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dmt.models import onnx_encoder


class Strided(nn.Module):
    """Two levels of features."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.second = nn.Conv2d(4, 6, 3, stride=2, padding=1)
        self.requires_grad_(False).eval()
        self.calls = 0

    def forward(self, images: Tensor) -> list[Tensor]:
        self.calls += 1
        first = self.norm(self.first(images)).relu()
        return [images, first, self.second(first)]


class Moody(Strided):
    """Cannot be exported: what it does depends on the numbers it sees."""

    def forward(self, images: Tensor) -> list[Tensor]:
        if torch._C._get_tracing_state() is not None:
            raise RuntimeError("no")
        return super().forward(images)


@pytest.fixture(autouse=True)
def nothing_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_encoder, "_ready", type(onnx_encoder._ready)())


def close(found: list[Tensor], expected: list[Tensor]) -> bool:
    return all(torch.allclose(one, other, atol=1e-5) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("shape", [(1, 3, 33, 65), (5, 3, 64, 64)])
def test_features_are_those_of_torch_at_every_size(shape: tuple[int, ...]) -> None:
    encoder, images = Strided(), torch.rand(*shape)
    assert onnx_encoder.suits(encoder, images)
    assert close(onnx_encoder.features(encoder, [1, 2], images), encoder(images)[1:])
    calls = encoder.calls
    onnx_encoder.features(encoder, [1, 2], images)
    assert encoder.calls == calls  # torch is not asked


def test_changed_parameters_are_noticed_and_copies_share_one_session() -> None:
    encoder, images = Strided(), torch.rand(2, 3, 40, 40)
    onnx_encoder.features(encoder, [1, 2], images)
    twin = copy.deepcopy(encoder)
    assert close(onnx_encoder.features(twin, [1, 2], images), encoder(images)[1:])
    assert len(onnx_encoder._ready) == 1
    state = {name: each + 0.5 if name == "first.bias" else each for name, each in encoder.state_dict().items()}
    twin.load_state_dict(state)
    assert close(onnx_encoder.features(twin, [1, 2], images), twin(images)[1:])
    assert len(onnx_encoder._ready) == 2
    assert not close(twin(images)[1:], encoder(images)[1:])


def test_an_encoder_that_cannot_be_exported_runs_by_torch() -> None:
    encoder, images = Moody(), torch.rand(2, 3, 40, 40)
    assert close(onnx_encoder.features(encoder, [1, 2], images), encoder(images)[1:])


def test_few_encoders_are_kept() -> None:
    for width in range(onnx_encoder.MOST + 2):
        encoder = Strided()
        encoder.norm.bias.add_(width)
        onnx_encoder.features(encoder, [2], torch.rand(1, 3, 33, 33))
    assert len(onnx_encoder._ready) == onnx_encoder.MOST


@pytest.mark.parametrize("case", ["learns", "trains", "asked for a gradient", "float64"])
def test_what_learns_runs_by_torch(case: str) -> None:
    encoder, images = Strided(), torch.rand(2, 3, 40, 40)
    if case == "learns":
        encoder.second.requires_grad_(True)
    elif case == "trains":
        encoder.train()
    elif case == "asked for a gradient":
        images.requires_grad_(True)
    else:
        encoder, images = encoder.double(), images.double()
    assert not onnx_encoder.suits(encoder, images)


@pytest.mark.parametrize("recorder", [(torch._C, "_get_tracing_state"), (torch.compiler, "is_compiling")])
def test_what_is_recorded_runs_by_torch(recorder: tuple[Any, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*recorder, lambda: True)
    assert not onnx_encoder.suits(Strided(), torch.rand(2, 3, 40, 40))
