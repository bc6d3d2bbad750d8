"""Nets that users register: what is refused before anything is written, and what must work."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import dmt
from dmt.errors import ConfigError
from dmt.models import registered
from dmt.results.report import Report
from dmt.runs import stopping
from dmt.runs.progress import Silent
from dmt.use import exporting
from tests.conftest import TINY
from tests.fitting.test_run import StopAt, nets


class Tied(nn.Module):
    """Two layers with the same parameters."""

    def __init__(self, classes: int, channels: int) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(64 * channels, 64), nn.Linear(64, 64)
        self.two.weight = self.one.weight
        self.head = nn.Linear(64, classes)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.two(self.one(images.flatten(1)).relu()).relu())
        return logits


class Several(nn.Module):
    """A net that gives more than logits."""

    def __init__(self, pack: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.head, self.pack = nn.Linear(64, 10), pack

    def forward(self, images: Tensor) -> object:
        return self.pack(self.head(images.flatten(1)))


def fit(out: Path, method: str = "baseline", watcher: Silent | StopAt | None = None) -> Report:
    settings = TINY | {"net": "mine", "epochs": 4}
    return dmt.fit("digits", out=out, method=method, settings=settings, watcher=watcher or Silent(), device="cpu")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda *_: Several(lambda logits: {"out": logits}),
            r'gives a dict.*its logits alone, e\.g\. net\(x\)\["out"\]',
        ),
        (lambda *_: Several(lambda logits: (logits, logits)), r"gives a tuple.*its logits alone, e\.g\. net\(x\)\[0\]"),
        (lambda classes, _: nn.Sequential(nn.Flatten(), nn.LazyLinear(classes)), "layers of unknown size"),
        (lambda classes, _: nn.Sequential(nn.Flatten(), nn.AdaptiveAvgPool1d(classes)), "no parameters to train"),
    ],
)
def test_what_cannot_be_trained_is_refused_first(
    make: Callable[[int, int], nn.Module], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registered.OWN, "mine", make)
    with pytest.raises(ConfigError, match=f"net 'mine' .*{says}") as caught:
        fit(tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_tied_parameters_stay_tied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registered.OWN, "mine", Tied)
    fit(tmp_path / "whole", "dmt")
    with pytest.raises(stopping.Stopped):
        fit(tmp_path / "parts", "dmt", StopAt(5))
    fit(tmp_path / "parts", "dmt")
    assert nets(tmp_path / "parts") == nets(tmp_path / "whole")
    net = exporting.load(exporting.export(tmp_path / "whole", "safetensors").paths[0]).net
    assert torch.equal(net.get_parameter("body.one.weight"), net.get_parameter("body.two.weight"))


@pytest.mark.parametrize("make", ["resnet", nn.Linear(3, 2), lambda: nn.Linear(3, 2)])
def test_a_net_is_registered_by_a_function_that_builds_it(make: Callable[..., nn.Module]) -> None:
    with pytest.raises(ConfigError, match=r"give net 'mine' a function \(classes, channels\) -> module") as caught:
        dmt.register_net("mine", make)
    assert "\n" not in str(caught.value)
    assert "mine" not in registered.OWN


def test_what_is_built_must_be_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registered.OWN, "mine", lambda classes, channels: None)
    with pytest.raises(ConfigError, match=r"a function that gives NoneType; let it return a torch\.nn\.Module"):
        fit(tmp_path / "run")


@pytest.mark.parametrize("name", ["", " ", 3, None])
def test_a_net_needs_a_name(name: object) -> None:
    with pytest.raises(ConfigError, match="registered under a name, such as 'tiny', not"):
        dmt.register_net(name, Tied)  # type: ignore[arg-type]


class Told(nn.Module):
    """A net with an ``embed`` that gives ``what`` of the input of its last layer."""

    def __init__(self, classes: int, what: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.body, self.head, self.what = nn.Sequential(nn.Flatten(), nn.Linear(64, 8)), nn.Linear(8, classes), what

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.body(images))
        return logits

    def embed(self, images: Tensor) -> object:
        return self.what(self.body(images))


NEEDS = [
    ("remixmatch", {}),
    ("graph-labels", {}),
    ("dmt", {"pretrain": "rotation"}),
    ("dmt", {"pretrain": "simsiam"}),
]


@pytest.mark.parametrize(("method", "more"), NEEDS)
def test_a_net_without_features_is_refused_before_anything_is_trained(
    method: str, more: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registered.OWN, "mine", Tied)
    settings = TINY | {"net": "mine", "epochs": 4, "epochs_pretrain": 1, **more}
    watch = StopAt(1)
    with pytest.raises(ConfigError, match=r"net 'mine' does not provide .* give it a method embed\(images\)"):
        dmt.fit("digits", out=tmp_path / "run", method=method, settings=settings, watcher=watch, device="cpu")
    assert not (tmp_path / "run").exists()
    monkeypatch.setitem(registered.OWN, "mine", lambda classes, _: Told(classes, lambda features: features[..., None]))
    with pytest.raises(ConfigError, match=r"gives \(2, 8, 1\) for 2 images; let it return \(N, features\)"):
        dmt.fit("digits", out=tmp_path / "run", method=method, settings=settings, watcher=watch, device="cpu")
    assert not (tmp_path / "run").exists()
    monkeypatch.setitem(registered.OWN, "mine", lambda classes, _: Told(classes, lambda features: features))
    with pytest.raises(stopping.Stopped):  # it trains
        dmt.fit("digits", out=tmp_path / "run", method=method, settings=settings, watcher=watch, device="cpu")


@pytest.mark.parametrize("method", ["unimatch", "unimatch-v2", "cct", "s4gan-mlmt"])
def test_a_net_for_pixels_that_is_whole_is_refused_where_it_is_divided(
    method: str, tiny_pixels: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registered.OWN, "mine", lambda classes, channels: nn.Conv2d(channels, classes, 3, padding=1))
    settings = tiny_pixels | {"net": "mine"}
    with pytest.raises(ConfigError, match="net 'mine' cannot be asked for features without its decoder"):
        dmt.fit("scenes", out=tmp_path / "run", method=method, settings=settings, watcher=Silent(), device="cpu")
    assert not (tmp_path / "run").exists()
