"""Nets taken out of their runs: equal to the original, or not written at all."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import typer
from PIL import Image
from typer.testing import CliRunner

import dmt
from dmt import files
from dmt.cli import export
from dmt.data.pixels.segment_sets import SegmentSet
from dmt.errors import ConfigError, DataError, DmtError, RunError
from dmt.models import build
from dmt.models.build import NetSpec
from dmt.models.mean_of_nets import MeanOfNets
from dmt.results.report import Report
from dmt.runs.progress import Silent
from dmt.types import Normalization
from dmt.use import exporting, onnx_files, scoring
from dmt.use.exporting import Exported, ExportOptions
from dmt.use.scoring import Shipped
from tests.conftest import TINY, TINY_PIXELS

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "small digits"
    dmt.fit("digits", out=out, method="baseline", settings=TINY, watcher=Silent())
    return out


@pytest.fixture(scope="module")
def scenes(few_scenes: SegmentSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "scenes"
    dmt.fit("scenes", out=out, method="baseline", settings=TINY_PIXELS, watcher=Silent())
    return out


@pytest.fixture(scope="module")
def of_images(digits: Path) -> Exported:
    """Exporting takes seconds, so tests look at one file."""
    return exporting.export(digits, "onnx")


@pytest.fixture(scope="module")
def of_pixels(scenes: Path) -> Exported:
    return exporting.export(scenes, "onnx")


def shipped_of(run: Path) -> Shipped:
    return scoring.shipped_net(run, None, None, CPU)


def logits(path: Path, images: torch.Tensor) -> np.ndarray:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    found: np.ndarray = session.run(None, {"images": images.numpy()})[0]
    return found


@torch.no_grad()
def apart(shipped: Shipped, path: Path, images: torch.Tensor) -> float:
    return float(np.abs(logits(path, images) - shipped.net(images).numpy()).max())


def leftovers(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.startswith(files.TEMPORARY)]


def test_images_by_onnx_equal_those_by_pytorch(digits: Path, of_images: Exported, generator: torch.Generator) -> None:
    (path,) = of_images.paths
    assert path == digits / "export" / "small digits.onnx"
    for count in (1, 2, 5, 33):
        assert apart(shipped_of(digits), path, torch.rand(count, 1, 8, 8, generator=generator)) < 1e-4
    assert "on 8 test images of digits" in of_images.summary
    assert "opset" in of_images.summary
    assert "1e-04 is allowed" in of_images.summary
    assert not leftovers(digits)


def test_pixels_by_onnx_equal_those_by_pytorch(scenes: Path, of_pixels: Exported, generator: torch.Generator) -> None:
    (path,) = of_pixels.paths
    for count, height, width in ((1, 32, 32), (3, 64, 96), (2, 160, 32)):
        images = torch.rand(count, 3, height, width, generator=generator)
        assert logits(path, images).shape == (count, 11, height, width)
        assert apart(shipped_of(scenes), path, images) < 1e-4
    assert "on 8 sample images of the run" in of_pixels.summary


def test_the_file_says_what_it_is(of_images: Exported, of_pixels: Exported, few_scenes: SegmentSet) -> None:
    for exported, axes in ((of_images, ["batch", 1, 8, 8]), (of_pixels, ["batch", 3, "height", "width"])):
        content = exported.paths[0].read_bytes()
        model = onnx.load_from_string(content)
        onnx.checker.check_model(model)
        (given,), (back,) = model.graph.input, model.graph.output
        assert (given.name, back.name) == ("images", "logits")
        assert [dim.dim_param or dim.dim_value for dim in given.type.tensor_type.shape.dim] == axes
        assert back.type.tensor_type.shape.dim[0].dim_param == "batch"
        assert b"torch/" not in content  # no source lines, no paths
        assert str(Path(dmt.__file__).parent.parent).encode() not in content
    about = {each.key: each.value for each in model.metadata_props}
    assert json.loads(about["classes"]) == list(few_scenes.classes)
    assert (about["task"], about["run"], about["dmt"], about["net"]) == (
        "segmentation",
        "scenes",
        dmt.__version__,
        "mean of two nets: fcn-4 and fcn-4",
    )
    assert "RGB in [0, 1]" in about["input"]
    assert "multiples of 32" in about["size"]
    assert "baseline seed 1" in about["name"]


def test_a_file_that_differs_is_not_kept(
    digits: Path, of_images: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One parameter is changed between exporting and comparing."""
    model = onnx.load(of_images.paths[0])
    bias = next(each for each in model.graph.initializer if "head.bias" in each.name)
    changed = onnx.numpy_helper.to_array(bias) + np.float32(0.01)
    bias.CopyFrom(onnx.numpy_helper.from_array(changed, bias.name))
    monkeypatch.setattr(onnx_files, "to_onnx", lambda net, spec: model)
    (tmp_path / "old.onnx").write_bytes(b"precious")
    for out, force in (("new.onnx", False), ("old.onnx", True)):
        with pytest.raises(RunError, match=r"differ by \d\.\de-0[23]; 1e-04 is allowed, so no file was kept"):
            exporting.export(digits, "onnx", out=tmp_path / out, force=force)
    assert [path.name for path in tmp_path.iterdir()] == ["old.onnx"]
    assert (tmp_path / "old.onnx").read_bytes() == b"precious"


def test_a_file_that_does_not_run_is_not_kept(
    digits: Path, of_images: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = onnx.load(of_images.paths[0])
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2  # for two images only
    monkeypatch.setattr(onnx_files, "to_onnx", lambda net, spec: model)
    with pytest.raises(RunError, match=r"the ONNX file does not work: .*; not kept") as caught:
        exporting.export(digits, "onnx", out=tmp_path / "new.onnx")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_logits_that_are_no_numbers_differ(digits: Path, of_images: Exported) -> None:
    shipped = shipped_of(digits)
    assert onnx_files.difference(shipped.net, of_images.paths[0], [torch.full((1, 1, 8, 8), torch.nan)]) == torch.inf


def test_a_net_that_cannot_be_followed_is_told_in_one_line() -> None:
    class Moody(torch.nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return images.mean((2, 3)) if images.sum().item() > 0 else images.amax((2, 3))

    spec = NetSpec("moody", 3, (3, 8, 8), Normalization((0.0,) * 3, (1.0,) * 3))
    with pytest.raises(
        ConfigError, match=r"net 'moody' cannot be exported to ONNX \(.*\); use --to safetensors"
    ) as caught:
        onnx_files.to_onnx(Moody(), spec)
    assert "\n" not in str(caught.value)


def test_only_nets_without_branches_are_traced() -> None:
    class Moody(torch.nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return images if images.sum().item() > 0 else -images

    axes = {0: "batch", 2: "height", 3: "width"}
    spec = NetSpec("fcn-4", 3, (3, 32, 32), Normalization((0.0,) * 3, (1.0,) * 3), pixels=True)
    pair = MeanOfNets({line: build.build(spec, seed) for seed, line in enumerate("AB")}).eval()
    images = torch.zeros(2, 3, 64, 96)
    assert onnx_files._traced(pair, images, axes) is not None
    assert not any(module.training for module in pair.modules())
    assert onnx_files._traced(Moody(), images, axes) is None


NETS = [
    ("wrn-10-1", (3, 16, 16), False),
    ("timm:resnet10t", (3, 32, 32), False),
    ("frozen:test_resnet", (3, 32, 32), False),
    ("frozen:test_vit", (3, 32, 32), False),
    ("deeplab2:test_resnet", (3, 32, 32), True),
    ("fpn:test_resnet", (3, 32, 32), True),
    ("smp:unet/resnet18", (3, 32, 32), True),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "shape", "pixels"), NETS, ids=[net[0] for net in NETS])
def test_every_family_of_nets(
    name: str, shape: tuple[int, int, int], pixels: bool, tmp_path: Path, generator: torch.Generator
) -> None:
    spec = NetSpec(name, 5, shape, Normalization((0.5,) * 3, (0.2,) * 3), pixels)
    net = build.build(spec, seed=1).eval()
    files.write(tmp_path / "net.onnx", onnx_files.to_onnx(net, spec).SerializeToString())
    images = [torch.randint(256, shape, generator=generator, dtype=torch.uint8) for _ in range(3)]
    batches = list(onnx_files.batches(images, pixels=pixels))
    assert len({len(batch) for batch in batches}) > 1
    assert len({batch.shape[-2:] for batch in batches}) == 1 + pixels
    assert onnx_files.difference(net, tmp_path / "net.onnx", batches) < exporting.TOLERANCE


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    numbers = np.random.default_rng(0)
    Image.fromarray(numbers.integers(0, 256, (37, 61, 3), dtype=np.uint8)).save(folder / "a.png")
    Image.fromarray(numbers.integers(0, 256, (900, 20), dtype=np.uint8)).save(folder / "b.png")
    return folder


def test_which_images_are_compared(digits: Path, scenes: Path, photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images, kind = exporting.pictures(scenes, shipped_of(scenes).spec, [photos], None)
    assert [tuple(each.shape) for each in images] == [(3, 37, 61), (3, exporting.LARGEST, 20)]
    assert kind == "images given"
    batches = [tuple(each.shape) for each in onnx_files.batches(images, pixels=True)]
    assert batches == [(1, 3, 64, 64), (2, 3, 128, 96), (1, 3, 768, 32)]

    spec = shipped_of(digits).spec
    images, _ = exporting.pictures(digits, spec, [photos / "a.png"], None)
    assert [tuple(each.shape) for each in onnx_files.batches(images, pixels=False)] == [(1, 1, 8, 8), (2, 1, 8, 8)]
    with pytest.raises(DataError, match="there is no file"):
        exporting.pictures(digits, spec, [photos / "c.png"], None)
    monkeypatch.setattr(exporting, "EMBEDDED", ())
    images, kind = exporting.pictures(digits, spec, [], None)
    assert (len(images), images[0].shape) == (8, (1, 8, 8))
    assert kind.startswith("random images")


def test_own_photos_are_compared_where_they_lie(digits: Path, photos: Path, tmp_path: Path) -> None:
    """As a run on a folder of images remembers them."""
    run = tmp_path / "run"
    files.write_json(run / "run.json", files.read_json(digits / "run.json") | {"folder": str(photos)})
    files.write_json(run / "splits" / "seed-1.json", {"labeled": ["a.png", "gone.png", "b.png"]})
    images, kind = exporting.pictures(run, shipped_of(digits).spec, [], None)
    assert (len(images), kind) == (2, "labeled photos of the run")


@pytest.mark.parametrize("kind", ["digits", "scenes"])
def test_a_card_brings_the_net_back(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: Path = request.getfixturevalue(kind)
    exported = exporting.export(run, "safetensors", out=tmp_path / "net.v1.safetensors")
    assert [path.name for path in exported.paths] == ["net.v1.safetensors", "net.v1.json"]
    assert "equal bit for bit" in exported.summary
    shipped, again = shipped_of(run), exporting.load(tmp_path / "net.v1.safetensors")
    assert replace(again, net=shipped.net) == shipped
    assert not again.net.training
    before, after = shipped.net.state_dict(), again.net.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)

    card = json.loads((tmp_path / "net.v1.json").read_text())
    net = Report.read([run]).jobs[0].shipped()
    assert net.together == (kind == "scenes")
    assert (card["method"], card["seed"]) == ("baseline", 1)
    assert (card["stage"], card["copy"]) == (net.name.stage, net.name.copy)
    assert card["holds"].startswith("two nets" if net.together else "one net")
    for split in ("validation", "test"):
        measured = net.scores[split]
        assert card["scores"][split] == {
            key: value for key, value in measured.items() if key not in ("confusion", "evidence")
        }
        assert card["scores"][split]["accuracy"] == measured["accuracy"]
    assert card["normalization"]["mean"] == pytest.approx(shipped.spec.normalization.mean)
    assert shipped.spec.name in card["net"]
    assert card["run"] == run.name
    assert tuple(card["classes"]) == shipped.classes

    monkeypatch.chdir(tmp_path)
    assert len(card["load"]) == 4
    names: dict[str, Any] = {}
    exec("\n".join(card["load"]), names)
    assert names["probabilities"].sum(1).detach().numpy() == pytest.approx(1, abs=1e-5)


def test_a_card_knows_its_own_parameters(digits: Path, tmp_path: Path) -> None:
    path, card = exporting.export(digits, "safetensors", out=tmp_path / "net.safetensors").paths
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(RunError, match="damaged, or its card belongs to another net"):
        exporting.load(path)
    card.write_text("[]")
    with pytest.raises(RunError, match="is not a card of dmt export"):
        exporting.load(path)
    card.unlink()
    with pytest.raises(RunError, match=r"no file .*net\.json; parameters and card must be in the same folder"):
        exporting.load(path)


def test_what_does_not_come_back_is_not_kept(digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(path: Path) -> Shipped:
        shipped = shipped_of(digits)
        next(shipped.net.parameters()).data.view(-1)[0] += 1
        return shipped

    monkeypatch.setattr(exporting, "load", other)
    with pytest.raises(RunError, match="reads back differently"):
        exporting.export(digits, "safetensors", out=tmp_path / "net.safetensors")
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten_unless_forced(digits: Path, tmp_path: Path) -> None:
    (tmp_path / "net.json").write_text("precious")
    with pytest.raises(RunError, match=r"net\.json already exists; .* --force"):
        exporting.export(digits, "safetensors", out=tmp_path / "net.safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["net.json"]
    exporting.export(digits, "safetensors", out=tmp_path / "net.safetensors", force=True)
    assert exporting.load(tmp_path / "net.json").name == shipped_of(digits).name
    (tmp_path / "dir.onnx").mkdir()
    with pytest.raises(RunError, match=r"dir\.onnx already exists"):
        exporting.export(digits, "onnx", out=tmp_path / "dir.onnx", force=True)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"to": "onx"}, "unknown format 'onx'; did you mean 'onnx'?"),
        ({"to": "onnx", "out": "net.pt"}, r"--out must end in \.onnx"),
        ({"to": "safetensors", "out": "net"}, r"--out must end in \.safetensors"),
        ({"to": "onnx", "options": ExportOptions(method="dmt")}, "no such method and seed"),
        ({"to": "onnx", "options": ExportOptions(seed=7)}, "no such method and seed"),
    ],
    ids=["format", "onnx ending", "safetensors ending", "method", "seed"],
)
def test_mistakes_are_one_line(digits: Path, options: dict[str, Any], says: str) -> None:
    with pytest.raises(DmtError, match=says) as caught:
        exporting.export(digits, **options)
    assert "\n" not in str(caught.value)


def test_missing_packages_are_named(digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ConfigError, match=r"needs onnxruntime, which was left out here: pip install onnxruntime"):
        exporting.export(digits, "onnx", out=tmp_path / "net.onnx")
    exporting.export(digits, "safetensors", out=tmp_path / "net.safetensors")  # needs none of them


@pytest.fixture
def command() -> tuple[CliRunner, typer.Typer]:
    app = typer.Typer()
    app.add_typer(export.app)
    return CliRunner(), app


def test_the_verb(digits: Path, tmp_path: Path, command: tuple[CliRunner, typer.Typer]) -> None:
    runner, app = command
    out = str(tmp_path / "net.safetensors")
    result = runner.invoke(app, ["export", str(digits), "--to", "safetensors", "--out", out, "-m", "baseline"])
    assert result.exit_code == 0, result.output
    assert f"as safetensors in {out}" in result.output
    again = runner.invoke(app, ["export", str(digits), "--to", "safetensors", "--out", out])
    assert isinstance(again.exception, RunError)
    assert runner.invoke(app, ["export", str(digits)]).exit_code == 2  # --to is needed
