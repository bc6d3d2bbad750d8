"""Features of images, computed once."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from dmt.data.sets import LabeledSet, UnlabeledSet
from dmt.models import build
from dmt.models.build import NetSpec
from dmt.training import encoding
from dmt.training.encoding import FeatureFile
from dmt.types import IMAGENET


def some(count: int) -> UnlabeledSet[Tensor]:
    images = torch.randint(0, 256, (count, 3, 8, 8), dtype=torch.uint8, generator=torch.manual_seed(count))
    return UnlabeledSet(tuple(map(str, range(count))), images)


class Counting:
    """An encoder of means, which counts what it looks at, and may break."""

    def __init__(self, most: int = 10**9) -> None:
        self.seen, self.most = 0, most

    def __call__(self, images: Tensor) -> Tensor:
        self.seen += len(images)
        if self.seen > self.most:
            raise KeyboardInterrupt
        return images.mean((2, 3))


def quiet(done: int, of: int) -> None:
    pass


def test_features_are_computed_once_and_kept(tmp_path: Path) -> None:
    images, encoder = some(5), Counting()
    file = FeatureFile(tmp_path, "net")
    found = file.compute(images, 3, lambda: encoder, quiet)
    assert found.shape == (5, 3, 3)
    torch.testing.assert_close(found[:, 0].float(), images.images.float().mean((2, 3)) / 255, atol=1e-3, rtol=0)
    torch.testing.assert_close(found[:, 1], found[:, 0], atol=1e-3, rtol=0)  # a mean does not see mirroring
    assert encoder.seen == 5 * 3 + 1  # and one to learn how wide features are
    again = FeatureFile(tmp_path, "net").compute(images, 3, lambda: pytest.fail("nothing is left to do"), quiet)
    assert torch.equal(again, found)
    other = Counting()
    FeatureFile(tmp_path, "another net").compute(images, 3, lambda: other, quiet)
    labeled = LabeledSet(images.ids, images.images[:4], torch.zeros(5, dtype=torch.int64))
    assert other.seen == encoder.seen
    assert FeatureFile(tmp_path, "net").compute(labeled.take(torch.arange(0)), 2, lambda: encoder, quiet).shape[0] == 0


def test_what_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "SAVED_EVERY", 2)
    monkeypatch.setattr("dmt.tasks.classification.images_per_forward", lambda size, device: 2)
    images, file = some(9), FeatureFile(tmp_path, "net")
    whole = FeatureFile(tmp_path / "whole", "net").compute(images, 2, Counting, quiet)
    with pytest.raises(KeyboardInterrupt):
        file.compute(images, 2, lambda: Counting(most=12), quiet)
    rest = Counting()
    assert torch.equal(file.compute(images, 2, lambda: rest, quiet), whole)
    assert rest.seen < 2 * 9


def test_onnx_gives_what_torch_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    shape = (3, 32, 32)
    net = build.build(NetSpec("frozen:resnet10t", 4, shape, IMAGENET), seed=1).eval()
    images = torch.rand(3, *shape)
    by_torch = encoding.encoder(net, torch.device("cpu"), shape, images=1)
    by_onnx = encoding._by_onnx(encoding._Encoder(net).eval(), shape)
    assert by_onnx is not None
    torch.testing.assert_close(by_onnx(images), by_torch(images), atol=1e-4, rtol=1e-4)
    with torch.no_grad():  # and a net takes features for images
        torch.testing.assert_close(net(by_torch(images)), net(images), atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(net(by_torch(images)[:, None].expand(-1, 2, -1)), net(images), atol=1e-5, rtol=1e-5)
