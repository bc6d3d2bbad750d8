"""Unlabeled photos that show something else are noticed before a run, and named wherever it is reported."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image

import dmt
from dmt import files, run_files
from dmt.data.sets import UnlabeledSet
from dmt.models.build import NetSpec, build
from dmt.results import guard
from dmt.tasks import pool
from dmt.types import Normalization
from tests.data.folders import photo_layout
from tests.own.test_search import Heard, task_of


def test_the_share_of_photos_unlike_the_labels() -> None:
    task = task_of(1.0, labeled=60, unlabeled=60)
    alike = pool.look(task)
    assert alike is not None
    assert not alike.told
    features = task.unlabeled.images[:].clone()
    features[:30] *= -1
    found = pool.look(replace(task, unlabeled=UnlabeledSet(task.unlabeled.ids, features)))
    assert found is not None
    assert 0.5 <= found.unlike < 0.6
    assert found.told
    assert len(found.images) == pool.SHOWN
    assert set(found.images[:4]) <= {f"u{number}" for number in range(30)}


def test_a_handful_of_labels_tells_nothing() -> None:
    assert pool.look(task_of(1.0, labeled=12)) is None
    assert pool.look(task_of(1.0, unlabeled=12)) is None


def test_a_run_names_them(tmp_path: Path, generator: torch.Generator) -> None:
    spec = NetSpec("timm:test_resnet", 5, (3, 32, 32), Normalization((0.5,) * 3, (0.5,) * 3))
    files.write_tensors(tmp_path / "start.safetensors", build(spec, seed=3).body.state_dict())
    photos = photo_layout.write_classes(tmp_path / "photos", labeled=8, unlabeled=20, test=1)
    for number in range(20):  # noise, where the others show shapes
        noise = torch.randint(0, 256, (64, 64, 3), dtype=torch.uint8, generator=generator)
        Image.fromarray(noise.numpy()).save(photos / "unlabeled" / f"noise{number}.png")
    settings = {"net": "frozen:test_resnet", "size": 32, "epochs": 1, "epochs_round": 1, "fractions": "1"}
    heard = Heard()
    report = dmt.fit(
        photos, out=tmp_path / "run", settings=settings, start=str(tmp_path / "start.safetensors"), watcher=heard
    )
    (said,) = [note for note in heard.notes if note.startswith("warning: ")]
    assert "of the unlabeled photos are unlike every labeled one (" in said
    assert "noise" in said
    assert files.read_json(tmp_path / "run" / run_files.MANIFEST)["pool"]["unlike"] >= 0.5
    job = next(each for each in report.jobs if each.method == "dmt")
    (finding,) = [each for each in guard.findings(job) if each.kind == "foreign"]
    assert str(finding) in str(report)
    baseline = next(each for each in report.jobs if each.method == "baseline")
    assert not [each for each in guard.findings(baseline) if each.kind == "foreign"]  # it learns from none of them


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_what_is_told(share: float) -> None:
    found = pool.Pool(share, ("a.jpg", "b\n.jpg"))
    assert found.told == (share > 0.25)
    assert str(found) == f"{share:.0%} of the unlabeled photos are unlike every labeled one (a.jpg, b\\n.jpg …)"
