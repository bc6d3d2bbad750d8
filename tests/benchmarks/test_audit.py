"""Flipped labels, small images taken for photos, and what an audit finds of them."""

from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks import audit, cifar_screening
from dmt import config as configuration
from dmt import presets
from dmt.data.folders import photo_pools
from dmt.data.folders.contents import Photo
from dmt.data.images.datasets import DATASETS
from dmt.tasks.classification import Classification
from dmt.tasks.features import FeatureTask
from tests.own.test_fine_tuning import SMALL, start_file

SIZE = 32


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Namespace:
    """Forty labels of what stands for CIFAR-10, judged by encoders of a moment."""
    monkeypatch.setitem(DATASETS, "cifar10", DATASETS["cifar10"])  # put back in the end
    cifar_screening.digits_for_images()
    start = start_file(tmp_path / "start.safetensors")
    return Namespace(labels=40, size=SIZE, start=start, data=tmp_path, out=tmp_path / "out", device="cpu")


def small(options: Namespace) -> Classification:
    config = configuration.override(presets.get("cifar10-4k").config, {"labels": options.labels})
    return audit.drawn(config, 1, options).task


def test_a_tenth_of_the_labels_is_flipped(options: Namespace) -> None:
    task = small(options)
    changed, wrong = audit.flip(task, seed=1)
    assert wrong.sum() == 4
    assert ((changed.labeled.labels != task.labeled.labels).numpy() == wrong).all()
    assert changed.labeled.ids == task.labeled.ids
    assert (audit.flip(task, seed=1)[1] == wrong).all()
    assert (audit.flip(task, seed=2)[1] != wrong).any()


def test_images_are_enlarged_like_photos_from_files(options: Namespace, tmp_path: Path) -> None:
    task = small(options)
    large = audit.enlarged(task, 48)
    assert large.shape == large.labeled.images.shape[1:] == (3, 48, 48)
    assert (len(large.labeled), len(large.unlabeled), len(large.test)) == (40, 0, 0)
    for image, other in zip(task.labeled.images[:3], large.labeled.images, strict=False):
        Image.fromarray(image.permute(1, 2, 0).numpy()).save(tmp_path / "image.png")
        assert (photo_pools.read_square(Photo("image.png", tmp_path / "image.png"), 48) == other.numpy()).all()


def test_labels_of_photos_are_judged_by_features(
    options: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "_cleanlab", lambda given, said: {"all": np.ones(len(given), dtype=bool)})
    net = f"frozen:{SMALL}"
    settings = {"net": net, "net_b": net, "epochs": "2", "stored_views": "1"}
    labels = audit.photos(presets.get("cifar10-4k").config, settings, 1, options)
    assert isinstance(labels.task, FeatureTask)
    found = audit.flipped(labels, 1, options)
    assert found["flipped"] == 4
    assert any("rate=" in line for line in found["folds"])
    assert not any("epochs=" in line for line in found["folds"])  # it was given
    assert found["cleanlab all"] == {"precision": 10.0, "recall": 100.0, "f1": pytest.approx(200 / 11), "flagged": 40}
    assert 0 <= found["dmt audit"]["recall"] <= 100
    stored = list((options.out / "features").glob("*.bin"))
    audit.photos(presets.get("cifar10-4k").config, settings, 1, options)
    assert list((options.out / "features").glob("*.bin")) == stored  # looked at once
