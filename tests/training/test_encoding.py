"""Features of images, computed once."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from dmt.data.sets import UnlabeledSet
from dmt.models import build
from dmt.models.build import NetSpec
from dmt.training import encoding
from dmt.training.encoding import Encode, Encoder, FeatureFolder
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


def largest(images: Tensor) -> Tensor:
    return images.amax((2, 3))[:, :2]


def means(encode: Encode, key: str = "means") -> Encoder:
    return Encoder(key, 3, lambda: encode)


def nothing() -> Encode:
    pytest.fail("nothing is left to do")


def quiet(done: int, of: int) -> None:
    pass


def test_features_are_computed_once_and_kept(tmp_path: Path) -> None:
    images, encoder = some(5), Counting()
    folder = FeatureFolder(tmp_path / "a")
    found = folder.compute(images, 3, [means(encoder)], quiet)
    assert found.shape == (5, 3, 3)
    torch.testing.assert_close(found[:, 0].float(), images.images.float().mean((2, 3)) / 255, atol=1e-3, rtol=0)
    torch.testing.assert_close(found[:, 1], found[:, 0], atol=1e-3, rtol=0)  # a mean does not see mirroring
    assert encoder.seen == 5 * 3
    done = Encoder("means", 3, nothing)
    assert torch.equal(folder.compute(images, 3, [done], quiet), found)
    elsewhere = FeatureFolder(tmp_path / "b", (tmp_path / "a",))
    assert torch.equal(elsewhere.compute(images, 3, [done], quiet), found)
    assert not (tmp_path / "b").exists()
    other = Counting()
    folder.compute(images, 3, [means(other, "other means")], quiet)
    assert other.seen == 5 * 3
    assert folder.compute(images.take(torch.arange(0)), 2, [done], quiet).shape == (0, 2, 3)


def test_several_encoders_stand_side_by_side(tmp_path: Path) -> None:
    images, told = some(4), []
    folder = FeatureFolder(tmp_path)
    both = [means(Counting()), Encoder("largest", 2, lambda: largest)]
    found = folder.compute(images, 2, both, lambda done, of: told.append((done, of)))
    scaled = images.images.float() / 255
    torch.testing.assert_close(found[:, 0, :3].float(), scaled.mean((2, 3)), atol=1e-3, rtol=0)
    torch.testing.assert_close(found[:, 0, 3:].float(), largest(scaled), atol=1e-3, rtol=0)
    assert told[-1] == (8, 8)


def test_what_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "SAVED_EVERY", 2)
    monkeypatch.setattr("dmt.tasks.classification.images_per_forward", lambda size, device: 2)
    images, folder = some(9), FeatureFolder(tmp_path)
    second = Encoder("largest", 2, lambda: largest)
    whole = FeatureFolder(tmp_path / "whole").compute(images, 2, [means(Counting()), second], quiet)
    with pytest.raises(KeyboardInterrupt):
        folder.compute(images, 2, [means(Counting(most=12)), second], quiet)
    rest = Counting()
    assert torch.equal(folder.compute(images, 2, [means(rest), second], quiet), whole)
    assert rest.seen < 2 * 9


def test_a_stop_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However short a budget is, the next one goes on behind what was done."""
    monkeypatch.setattr("dmt.tasks.classification.images_per_forward", lambda size, device: 2)
    images, folder, seen = some(7), FeatureFolder(tmp_path), []

    def stop(done: int, of: int) -> None:
        seen.append(done)
        raise KeyboardInterrupt

    for _ in range(4):
        with pytest.raises(KeyboardInterrupt):
            folder.compute(images, 1, [means(Counting())], stop)
    assert seen == [2, 4, 6, 7]
    found = folder.compute(images, 1, [Encoder("means", 3, nothing)], quiet)
    torch.testing.assert_close(found[:, 0].float(), images.images.float().mean((2, 3)) / 255, atol=1e-3, rtol=0)


def test_a_file_that_was_cut_off_is_made_again(tmp_path: Path) -> None:
    images, folder, again = some(4), FeatureFolder(tmp_path), Counting()
    whole = folder.compute(images, 1, [means(Counting())], quiet).clone()
    (file,) = tmp_path.glob("*.bin")
    file.write_bytes(file.read_bytes()[:10])
    assert torch.equal(folder.compute(images, 1, [means(again)], quiet), whole)
    assert again.seen == 4


def test_onnx_gives_what_torch_gives_and_a_net_takes_features_for_images() -> None:
    pytest.importorskip("onnxruntime")
    shape = (3, 32, 32)
    spec = NetSpec("frozen:resnet10t", 4, shape, IMAGENET, offset=5)
    net = build.build(spec, seed=1).eval()
    images = torch.rand(3, *shape)
    by_torch = encoding.encoder(net, torch.device("cpu"), shape, images=1)(images)
    by_onnx = encoding._by_onnx(encoding._Encoder(net).eval(), shape)
    assert by_onnx is not None
    torch.testing.assert_close(by_onnx(images), by_torch, atol=1e-4, rtol=1e-4)
    beside = torch.cat([torch.rand(3, 5), by_torch, torch.rand(3, 7)], 1)  # of other encoders
    with torch.no_grad():
        torch.testing.assert_close(net(beside), net(images), atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(net(beside[:, None].expand(-1, 2, -1)), net(images), atol=1e-5, rtol=1e-5)


def test_features_that_are_not_what_was_written_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dmt.tasks.classification.images_per_forward", lambda size, device: 2)
    images, folder = some(5), FeatureFolder(tmp_path / "a")
    both = [means(Counting()), Encoder("largest", 2, lambda: largest)]
    whole = folder.compute(images, 2, both, quiet).clone()
    (file,) = tmp_path.glob("a/*.bin")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))
    elsewhere, again = Counting(), Counting()
    FeatureFolder(tmp_path / "b", (tmp_path / "a",)).compute(images, 2, [means(elsewhere), both[1]], quiet)
    assert torch.equal(folder.compute(images, 2, [means(again), both[1]], quiet), whole)
    assert elsewhere.seen == again.seen == 5 * 2


@pytest.mark.parametrize("index", ['{"done": [4]}', '{"done": 4}', '{"done": [9]}', "["])
def test_an_index_without_checksums_is_believed_and_a_damaged_one_is_not(index: str, tmp_path: Path) -> None:
    """Releases until 0.2 wrote none."""
    images, folder, again = some(4), FeatureFolder(tmp_path), Counting()
    whole = folder.compute(images, 1, [means(Counting())], quiet).clone()
    next(tmp_path.glob("*.json")).write_text(index)
    assert torch.equal(folder.compute(images, 1, [means(again)], quiet), whole)
    assert again.seen == (0 if index == '{"done": [4]}' else 4)
