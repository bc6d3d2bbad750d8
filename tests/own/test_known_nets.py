"""A user's photos that are learned by the last layer of a published net, from the folder to predictions."""

import sys
from pathlib import Path

import pytest
import torch
from PIL import Image
from tests.data.folders import photo_layout
from tests.fitting.test_photos_run import Notes

from dmt.cli import app
from dmt.fitting import run
from dmt.models import starts, torchvision_pair
from dmt.own import choosing
from dmt.runs.progress import Silent

BRIEF = {"epochs": 1, "epochs_round": 1, "fractions": "1", "batch_pseudo": 12, "batch_labeled": 4}


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package of published parameters, with random ones in it."""
    torchvision_pair.ensure()
    import timm

    torch.manual_seed(0)
    file = tmp_path / "efficientnet-lite0.pth"
    torch.save(timm.create_model("tf_efficientnet_lite0").state_dict(), file)
    monkeypatch.setattr(choosing, "_wheel", lambda: True)
    monkeypatch.setattr(starts, "_wheel_file", lambda net: file)
    return file


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    root = photo_layout.write_classes(tmp_path / "photos", 5, 12, 2)
    for path in root.rglob("*.jpg"):
        with Image.open(path) as image:
            image.resize((110, 100)).save(path)
    return root


def test_from_photos_to_predictions(wheel: Path, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, notes = tmp_path / "run", Notes()
    report = run.fit(photos, out=out, settings=BRIEF, watcher=notes, device="cpu")
    assert "net=frozen:tf_efficientnet_lite0, start wheel: it is pretrained on photos" in notes
    assert "A0: 245 tensors of the encoder from efficientnet-lite0.pth" in notes
    assert [job.method for job in report.jobs] == ["baseline", "dmt"]

    written = {path: path.stat().st_mtime_ns for path in out.glob("stages/**/*.safetensors")}
    run.fit(photos, out=out, settings=BRIEF, watcher=Silent(), device="cpu")
    assert {path: path.stat().st_mtime_ns for path in out.glob("stages/**/*.safetensors")} == written

    wheel.unlink()  # whoever uses a finished net needs it no more
    words = ["dmt", "predict", out, photos / "unlabeled", "--out", tmp_path / "pred.csv"]
    monkeypatch.setattr(sys, "argv", [str(word) for word in words])
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert not ended.value.code
    assert len((tmp_path / "pred.csv").read_text().splitlines()) == 1 + 12


def test_a_run_of_another_net_needs_no_wheel(wheel: Path, photos: Path, tmp_path: Path) -> None:
    wheel.unlink()
    notes = Notes()
    settings = BRIEF | {"net": "resnet8-4"}
    run.fit(photos, out=tmp_path / "run", method="baseline", settings=settings, watcher=notes, device="cpu")
    assert "net=resnet8-4, start random: as you asked" in notes
    assert "size=32" in notes
