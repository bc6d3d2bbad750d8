"""A classifier inside a net: what it switches off, when, and that it goes wherever the net's parameters go."""

import copy

import pytest
import torch
from torch import Tensor

from dmt.core.ema import SlowCopy
from dmt.errors import ConfigError
from dmt.models import build, class_filter, groups, registered
from dmt.models.build import Normalized
from dmt.models.encoder_decoder import EncoderDecoder
from dmt.models.mean_of_nets import MeanOfNets
from dmt.objectives.multi_label import S4GANMultiLabel
from dmt.training import beside
from tests.models.test_encoder_decoder import STRIDES, spec

IMAGES = torch.rand(2, 3, 45, 38, generator=torch.Generator().manual_seed(1))


def filtered(name: str = "fcn-4", threshold: float = 0.2, seed: int = 1) -> Normalized:
    net = build.build(spec(name), seed)
    net.add_class_filter(build.feature_maps(net, spec(name))[-1].width, 4, threshold)
    return net


def says(net: Normalized, *logits: float) -> Normalized:
    """The classifier gives these logits to the four classes of every image."""
    assert net.class_filter is not None
    with torch.no_grad():
        net.class_filter.head.weight.zero_()
        net.class_filter.head.bias.copy_(torch.tensor(logits))
    return net


@torch.no_grad()
@pytest.mark.parametrize("name", STRIDES)
def test_an_encoder_alone_gives_the_same_features(name: str) -> None:
    body = build.build(spec(name), seed=1).body.eval()
    assert isinstance(body, EncoderDecoder)
    alone = body.encoder_alone()
    for mine, theirs in zip(alone.features(IMAGES), body.features(IMAGES), strict=True):
        assert torch.equal(mine, theirs)
    names = {name for name, _ in body.named_parameters()} - {name for name, _ in alone.named_parameters()}
    assert names, "what only decodes is left out"
    for each in alone.parameters():
        each.zero_()
    assert all(bool(each.any()) for each in body.parameters() if each.ndim > 1), "its parameters are its own"


@pytest.mark.parametrize("name", STRIDES)
def test_all_of_the_classifier_learns_and_nothing_of_the_segmenter(name: str) -> None:
    net = filtered(name).train()
    assert net.class_filter is not None
    net.presence(IMAGES).square().sum().backward()  # type: ignore[no-untyped-call]
    assert all(each.grad is None for each in net.body.parameters())
    learned = {name for name, each in net.class_filter.named_parameters() if each.grad is not None}
    net.features(IMAGES)[-1].sum().backward()  # type: ignore[no-untyped-call]
    encoder = {f"body.{name}" for name, each in net.body.named_parameters() if each.grad is not None}
    assert learned == encoder | {"head.weight", "head.bias"}
    slower = groups.encoder_names(net)
    assert {f"class_filter.{name}" for name in encoder} <= slower
    assert "class_filter.head.weight" not in slower


@torch.no_grad()
def test_absent_classes_are_switched_off_outside_of_training_only() -> None:
    net = says(filtered(), 2.0, -2.0, -1.3, 0.0)  # probabilities .88, .12, .21, .5
    plain = build.build(spec("fcn-4"), seed=1)
    logits = net.eval()(IMAGES)
    whole = plain.eval()(IMAGES)
    assert torch.equal(logits[:, [0, 2, 3]], whole[:, [0, 2, 3]])
    assert torch.equal(logits[:, 1], whole[:, 1] - class_filter.OFF)
    assert bool(torch.isfinite(logits).all())
    assert float(logits.softmax(1)[:, 1].max()) == 0.0
    torch.testing.assert_close(net.train()(IMAGES), plain.train()(IMAGES))


@torch.no_grad()
def test_a_class_that_is_switched_off_does_not_win_over_negative_logits() -> None:
    """Multiplied by 0, as in s4GAN's code, it would."""
    net = says(filtered(), 2.0, 2.0, 2.0, -9.0).eval()
    assert net.class_filter is not None
    logits = torch.tensor([-3.0, -1.0, -2.0, 5.0]).view(1, 4, 1, 1).expand(2, 4, 45, 38)
    assert (net.class_filter.switched(logits, IMAGES).argmax(1) == 1).all()


@torch.no_grad()
def test_where_no_class_is_left_all_stay() -> None:
    net = says(filtered(), -3.0, -4.0, -5.0, -6.0).eval()
    assert torch.equal(net(IMAGES), build.build(spec("fcn-4"), seed=1).eval()(IMAGES))


@torch.no_grad()
def test_a_net_without_one_gets_it_with_the_parameters() -> None:
    """Alone, within a mean of nets, as a slow copy: logits are the same, threshold included."""
    net = says(filtered(threshold=0.3, seed=5), 2.0, -1.3, 2.0, 2.0).eval()
    fresh = build.build(spec("fcn-4"), seed=2).eval()
    fresh.load_state_dict(net.state_dict())
    assert torch.equal(fresh(IMAGES), net(IMAGES))
    assert float(fresh(IMAGES).softmax(1)[:, 1].max()) == 0.0
    pair = MeanOfNets({"A": net, "B": build.build(spec("fcn-4"), seed=3)}).eval()
    again = MeanOfNets({line: build.build(spec("fcn-4"), seed=7) for line in "AB"}).eval()
    again.load_state_dict(pair.state_dict())
    assert torch.equal(again(IMAGES), pair(IMAGES))
    slow = SlowCopy(net.train(), 0.9)
    assert torch.equal(slow.net(IMAGES), fresh(IMAGES))


def test_a_plain_net_is_what_it_was() -> None:
    net = build.build(spec("fcn-4"), seed=1)
    assert net.class_filter is None
    assert not any("class_filter" in name for name in net.state_dict())
    with pytest.raises(RuntimeError, match=r"class_filter\.head"):
        filtered().load_state_dict(net.state_dict())
    assert copy.deepcopy(net).class_filter is None


def test_a_net_that_gives_no_features_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Whole(torch.nn.Conv2d):
        def forward(self, images: Tensor) -> Tensor:
            return super().forward(images)

    monkeypatch.setitem(registered.OWN, "whole", lambda classes, channels: Whole(channels, classes, 1))
    with pytest.raises(ConfigError, match=r"net 'whole' cannot be asked for features"):
        beside.add_class_filters(S4GANMultiLabel(), {"A": build.build(spec("whole"), seed=1)}, spec("whole"), 1)
