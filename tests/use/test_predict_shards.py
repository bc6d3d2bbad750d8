"""Predictions of images in shards, and predictions as shards."""

import csv
import json
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dmt.cli import app
from dmt.data.folders import photo_files, tar_places
from dmt.models import build
from dmt.models.build import NetSpec
from dmt.types import IMAGENET
from dmt.use import predict_masks, scoring
from dmt.use.scoring import Shipped
from tests.data.folders import http_server, photo_layout, shard_layout

NAMES = ("disk", "square", "triangle")
Command = Callable[..., str]


@pytest.fixture
def photos(tmp_path: Path) -> list[Path]:
    return photo_layout.write_images(tmp_path / "photos", NAMES * 2, ending="png")


@pytest.fixture
def classifier(monkeypatch: pytest.MonkeyPatch) -> Shipped:
    return ship(monkeypatch, NetSpec("resnet8-4", 3, (3, 16, 16), IMAGENET))


@pytest.fixture
def segmenter(monkeypatch: pytest.MonkeyPatch) -> Shipped:
    return ship(monkeypatch, NetSpec("fcn-4", 3, (3, 32, 32), IMAGENET, pixels=True))


def ship(monkeypatch: pytest.MonkeyPatch, spec: NetSpec) -> Shipped:
    shipped = Shipped(build.build(spec, 1).eval(), spec, NAMES, ((0, 0, 0), (255, 0, 0), (0, 0, 255)), "a net")
    monkeypatch.setattr(scoring, "shipped_net", lambda *words: shipped)
    return shipped


@pytest.fixture
def predict(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*words: object, code: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["dmt", "predict", "run", *map(str, words), "--device", "cpu"])
        with pytest.raises(SystemExit) as caught:
            app.main()
        printed, said = capsys.readouterr()
        assert (caught.value.code or 0) == code, said
        return said if code else printed + said

    return run


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))[1:]


def members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        found = {each.name: archive.extractfile(each) for each in archive}
        return {name: held.read() for name, held in found.items() if held is not None}


def test_images_in_shards_get_the_classes_of_their_files(
    classifier: Shipped,
    photos: list[Path],
    predict: Command,
    tmp_path: Path,
) -> None:
    predict(tmp_path / "photos", "--out", tmp_path / "files.csv")
    names = ["a.png", "deep/b.png", "b.v1.0.png", "same.png", "same.png", "ünï, cöde.png"]
    packed = [(name, path.read_bytes()) for name, path in zip(names, photos, strict=True)]
    shard_layout.write_tar(tmp_path / "shards" / "0.tar", [("a.cls", b"2"), *packed[:4], (".hidden.png", b"")])
    shard_layout.write_tar(tmp_path / "shards" / "1.tar", packed[4:])
    assert "6 images classified" in predict(tmp_path / "shards", "--out", tmp_path / "shards.csv")
    found, expected = rows(tmp_path / "shards.csv"), rows(tmp_path / "files.csv")
    assert [row[1:] for row in found] == [row[1:] for row in expected]
    assert [row[0] for row in found] == [
        f"{tmp_path}/shards/{place}.tar/{name}" for place, name in zip((0, 0, 0, 0, 1, 1), names, strict=True)
    ]


@pytest.mark.usefixtures("by_http")
@pytest.mark.parametrize("kind", [http_server.Parts, http_server.WholeFiles])
def test_shards_at_an_http_server(
    kind: type[http_server.WholeFiles], classifier: Shipped, photos: list[Path], predict: Command, tmp_path: Path
) -> None:
    predict(tmp_path / "photos", "--out", tmp_path / "files.csv")
    packed = [(path.name, path.read_bytes()) for path in photos]
    for number in range(2):
        shard_layout.write_tar(tmp_path / "served" / f"{number}.tar", packed[3 * number : 3 * number + 3])
    with http_server.serving(tmp_path / "served", kind) as url:
        assert "6 images classified" in predict(f"{url}/{{0..1}}.tar", "--out", tmp_path / "p.csv")
        assert "cannot read" in predict(f"{url}/2.tar", "--out", tmp_path / "q.csv", code=2)
    assert [row[1:] for row in rows(tmp_path / "p.csv")] == [row[1:] for row in rows(tmp_path / "files.csv")]


def test_what_cannot_be_read_in_a_shard_is_skipped(
    classifier: Shipped,
    photos: list[Path],
    predict: Command,
    tmp_path: Path,
) -> None:
    contents = [path.read_bytes() for path in photos]
    shard_layout.write_tar(tmp_path / "0.tar", [("a.png", contents[0]), ("b.png", b"no image"), ("c.png", contents[1])])
    cut = shard_layout.write_tar(tmp_path / "1.tar", [("d.png", contents[2]), ("e.png", contents[3])])
    cut.write_bytes(cut.read_bytes()[: 512 + len(contents[2]) + 1024 + 600])
    said = predict(tmp_path / "0.tar", cut, "--out", tmp_path / "p.csv")
    assert [Path(row[0]).name for row in rows(tmp_path / "p.csv")] == ["a.png", "c.png", "d.png"]
    assert "skipped" in said
    assert "0.tar/b.png is not an image" in said
    assert "1.tar is damaged or its end is missing" in said


def test_shards_of_classes(
    classifier: Shipped,
    photos: list[Path],
    predict: Command,
    tmp_path: Path,
) -> None:
    pytest.importorskip("webdataset")
    shard = shard_layout.write_tar(tmp_path / "0.tar", [(f"deep/{path.name}", path.read_bytes()) for path in photos])
    predict(shard, "--out", tmp_path / "p.csv")
    predict(shard, "--out", tmp_path / "new" / "p-%03d.tar")
    found = members(tmp_path / "new" / "p-000.tar")
    for path, (_, label, probability, margin) in zip(photos, rows(tmp_path / "p.csv"), strict=True):
        assert NAMES[int(found[f"deep/{path.stem}.cls"])] == label
        told = json.loads(found[f"deep/{path.stem}.json"])
        assert (told["class"], f"{told['probability']:.6f}", f"{told['margin']:.6f}") == (label, probability, margin)
        assert sum(told["probabilities"]) == pytest.approx(1.0, abs=1e-5)
    assert "there already" in predict(shard, "--out", tmp_path / "new" / "p-%03d.tar", code=2)
    assert "where the number of a shard goes" in predict(shard, "--shards", "--out", tmp_path / "p.tar", code=2)


def test_shards_of_masks(
    segmenter: Shipped,
    photos: list[Path],
    predict: Command,
    tmp_path: Path,
) -> None:
    pytest.importorskip("webdataset")
    predict(tmp_path / "photos", "--shards", "--out", tmp_path / "masks")
    found = members(tmp_path / "masks" / "pred-000000.tar")
    (tmp_path / "mask.png").write_bytes(found[f"{str(photos[0].with_suffix(''))[1:]}.mask.png"])
    with Image.open(tmp_path / "mask.png") as mask:
        expected = predict_masks.label(segmenter, photo_files.read_photo(photos[0]))
        assert np.array_equal(np.asarray(mask), expected)
    assert (tmp_path / "masks" / "classes.csv").exists()


def test_without_webdataset_a_line_says_what_to_install(
    classifier: Shipped,
    photos: list[Path],
    predict: Command,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for package in ("webdataset", "braceexpand"):
        monkeypatch.setitem(sys.modules, package, None)
    for words in ([photos[0], "--out", tmp_path / "p-%d.tar"], [tmp_path / "{0..3}.tar"], ["pipe:cat x.tar"]):
        assert tar_places.INSTALL in predict(*words, code=2)
