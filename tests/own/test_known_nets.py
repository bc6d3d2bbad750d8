"""A user's photos that are learned by the last layer of a published net, from the folder to predictions."""

import shutil
import sys
from pathlib import Path

import pytest
import torch
from PIL import Image

from dmt.auditing import auditor
from dmt.auditing.auditor import AuditOptions
from dmt.cli import app
from dmt.fitting import run
from dmt.models import names, starts, torchvision_pair
from dmt.models.frozen import OnEncoder
from dmt.own import choosing, known_nets
from dmt.runs.progress import Silent
from dmt.use import exporting, scoring
from tests.data.folders import photo_layout
from tests.fitting.test_photos_run import Notes

BRIEF = {"epochs": 1, "epochs_round": 1, "fractions": "1", "batch_pseudo": 12, "batch_labeled": 4}


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The packages of published parameters, with random ones in them; returns their folder."""
    torchvision_pair.ensure()
    import timm

    torch.manual_seed(0)
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name in (known_nets.KNOWN, known_nets.KNOWN_B):
        torch.save(timm.create_model(name).state_dict(), folder / f"{name}.pth")
    monkeypatch.setattr(known_nets, "_wheel", lambda: True)
    monkeypatch.setattr(choosing, "LOOKS", 0)  # one look at each photo
    monkeypatch.setattr(starts, "_wheel_file", lambda net: folder / f"{names.encoder(net)}.pth")
    return folder


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    root = photo_layout.write_classes(tmp_path / "photos", 5, 12, 2)
    for path in root.rglob("*.jpg"):
        with Image.open(path) as image:
            image.resize((110, 100)).save(path)
    return root


def dmt(patch: pytest.MonkeyPatch, *words: object) -> None:
    """A command that ends well."""
    patch.setattr(sys, "argv", ["dmt", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert not ended.value.code


def test_from_photos_to_predictions(wheel: Path, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, notes = tmp_path / "run", Notes()
    report = run.fit(photos, out=out, settings=BRIEF, watcher=notes, device="cpu")
    assert "net=frozen:tf_efficientnet_lite0, start wheel: pretrained on photos" in notes
    assert "net_b=frozen:tf_efficientnet_lite2: two different nets learn" in notes
    assert "A0: 245 tensors of the encoder from tf_efficientnet_lite0.pth" in notes
    assert "B0: 320 tensors of the encoder from tf_efficientnet_lite2.pth" in notes
    assert len(list(out.glob(".cache/features-*.bin"))) == 3  # of the sets that hold photos, both encoders side by side
    for job in report.jobs:
        assert job.both is not None  # by the features of both encoders
    assert [job.method for job in report.jobs] == ["baseline", "dmt"]

    written = {path: path.stat().st_mtime_ns for path in out.glob("stages/**/*.safetensors")}
    run.fit(photos, out=out, settings=BRIEF, watcher=Silent(), device="cpu")
    assert {path: path.stat().st_mtime_ns for path in out.glob("stages/**/*.safetensors")} == written

    with monkeypatch.context() as patch:  # an audit reads the run's features, and looks at no photo
        patch.setattr(OnEncoder, "seen", lambda self, images: pytest.fail("an encoder looks at photos"))
        audited = auditor.audit(out, tmp_path / "audit", AuditOptions(folds=2), device="cpu", watcher=Silent())
    assert not isinstance(audited.findings.following, str)
    assert {each.file for each in audited.findings.following} <= {
        f"unlabeled/{each.name}" for each in photos.glob("unlabeled/*")
    }

    shutil.rmtree(wheel)  # whoever uses a finished net needs them no more
    dmt(monkeypatch, "predict", out, photos / "unlabeled", "--out", tmp_path / "pred.csv")
    assert len((tmp_path / "pred.csv").read_text().splitlines()) == 1 + 12


def test_a_run_of_another_net_needs_no_wheel(wheel: Path, photos: Path, tmp_path: Path) -> None:
    shutil.rmtree(wheel)
    notes = Notes()
    settings = BRIEF | {"net": "resnet8-4"}
    run.fit(photos, out=tmp_path / "run", method="baseline", settings=settings, watcher=notes, device="cpu")
    assert "net=resnet8-4, start random: as requested" in notes
    assert "size=32" in notes


def test_from_masks_to_masks(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = photo_layout.write_masks(tmp_path / "photos", labeled=3, unlabeled=3, test=1)
    for path in [*root.rglob("*.jpg"), *root.rglob("*.png")]:
        with Image.open(path) as image:
            image.resize((110, 100), Image.Resampling.NEAREST).save(path)
    brief = BRIEF | {"batch": 2, "batch_pseudo": 2, "batch_labeled": 1, "crop": "32,32"}
    out, notes = tmp_path / "run", Notes()
    report = run.fit(root, out=out, settings=brief, watcher=notes, device="cpu")
    assert "net=frozen-fpn:tf_efficientnet_lite0, start wheel: pretrained on photos" in notes
    assert "net_b=frozen-fpn:tf_efficientnet_lite2: two different nets learn" in notes
    assert "B0: 315 tensors of the encoder from tf_efficientnet_lite2.pth; decoder and head random" in notes
    for job in report.jobs:
        assert job.both is not None
        assert job.shipped() == job.both

    shutil.rmtree(wheel)
    scored = scoring.shipped_net(out, "dmt", None, torch.device("cpu"))
    exporting.export(out, "safetensors", out=tmp_path / "net.safetensors")
    again = exporting.load(tmp_path / "net.safetensors")
    images = torch.rand(1, 3, 100, 110, generator=torch.Generator().manual_seed(0))
    assert torch.equal(again.net(images), scored.net(images))
    dmt(monkeypatch, "report", out, "--out", tmp_path / "report.html")
    assert "both, %" in (tmp_path / "report.html").read_text()
    dmt(monkeypatch, "predict", out, root / "unlabeled", "--out", tmp_path / "found")
    found = sorted((tmp_path / "found/masks").iterdir())
    assert len(found) == 3
    with Image.open(found[0]) as mask:
        assert mask.size == (110, 100)
