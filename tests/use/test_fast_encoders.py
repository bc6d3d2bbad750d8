"""Many images on a CPU: frozen encoders by ONNX Runtime say what they say by torch."""

import pytest
import torch
from torch import Tensor, nn

from dmt.data.folders.contents import Photo
from dmt.models.build import NetSpec, build
from dmt.models.mean_of_nets import MeanOfNets
from dmt.training import encoding
from dmt.types import Normalization
from dmt.use import fast_encoders, predict

SHAPE = (3, 32, 32)
MANY = encoding.WORTH_EXPORTING


def net_of(name: str, seed: int = 0) -> nn.Module:
    net = build(NetSpec(name, 4, SHAPE, Normalization((0.4,) * 3, (0.2,) * 3)), seed)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm1d):  # as after training
            assert module.running_var is not None
            module.running_var.fill_(0.01)
    return net.eval()


@torch.no_grad()
def test_both_nets_of_a_pair_say_the_same(generator: torch.Generator) -> None:
    pair = MeanOfNets({"A": net_of("frozen:test_resnet"), "B": net_of("frozen:test_efficientnet", 1)}).eval()
    images = torch.rand(7, *SHAPE, generator=generator)
    fast = fast_encoders.for_many(pair, SHAPE, MANY)
    assert all(isinstance(each, fast_encoders._OnFeatures) for each in fast.nets.values())  # type: ignore[operator]
    torch.testing.assert_close(fast(images).exp(), pair(images).exp(), rtol=0, atol=2e-3)
    assert next(fast.parameters()).device.type == "cpu"


@pytest.mark.parametrize(("name", "count"), [("frozen:test_resnet", MANY - 1), ("resnet8-4", MANY)])
def test_few_images_and_other_nets_stay_with_torch(name: str, count: int) -> None:
    net = net_of(name)
    assert fast_encoders.for_many(net, SHAPE, count) is net


def test_predictions_of_many_images_are_those_of_few(generator: torch.Generator) -> None:
    net = net_of("frozen:test_resnet")
    squares = (255 * torch.rand(5, *SHAPE, generator=generator)).to(torch.uint8)

    def said(expected: int) -> list[tuple[str, str, float]]:
        images: list[tuple[Photo, Tensor]] = [(Photo(f"{n}.png", None), each) for n, each in enumerate(squares)]  # type: ignore[arg-type]
        found = predict.predict(net, images, ("a", "b", "c", "d"), expected=expected)
        return [(each.name, each.label, round(each.probability, 2)) for each in found]

    few, many = said(0), said(MANY)
    assert [each[:2] for each in few] == [each[:2] for each in many]
    assert [each[2] for each in few] == pytest.approx([each[2] for each in many], abs=0.011)
