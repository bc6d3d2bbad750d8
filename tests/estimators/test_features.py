"""Features of photos for any estimator."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from dmt.models.build import NetSpec, build
from dmt.sklearn import FrozenFeatures
from dmt.types import IMAGENET


@pytest.fixture
def start(tmp_path: Path) -> str:
    """An encoder with known parameters."""
    net = build(NetSpec("frozen:resnet10t", 2, (3, 32, 32), IMAGENET), seed=5)
    torch.save(net.body.encoder.state_dict(), tmp_path / "encoder.pth")  # type: ignore[union-attr]
    return str(tmp_path / "encoder.pth")


def test_a_head_learns_from_what_the_encoder_sees(start: str) -> None:
    chance = np.random.default_rng(0)
    truth = np.arange(20) % 2
    photos = (100 * truth[:, None, None, None] + chance.integers(0, 100, (20, 32, 32, 3))).astype(np.uint8)
    features = FrozenFeatures("resnet10t", start).fit(photos)
    rows = features.transform(photos)
    net = build(NetSpec("frozen:resnet10t", 2, (3, 32, 32), IMAGENET), seed=5)
    images = torch.from_numpy(photos.transpose(0, 3, 1, 2)) / 255
    with torch.no_grad():
        expected = net.body.encoder((images - net.mean) / net.std)  # type: ignore[operator]
    np.testing.assert_allclose(rows, expected.numpy(), rtol=1e-3, atol=1e-3)
    head = make_pipeline(features, LogisticRegression(max_iter=1000)).fit(photos[:12], truth[:12])
    assert head.score(photos, truth) > 0.9


def test_other_arrays_are_refused(start: str) -> None:
    with pytest.raises(ValueError, match="must be photos"):
        FrozenFeatures("resnet10t", start).fit(np.zeros((4, 32, 32)))
    features = FrozenFeatures("resnet10t", start).fit(np.zeros((4, 32, 32, 3), np.uint8))
    with pytest.raises(ValueError, match="were fitted"):
        features.transform(np.zeros((4, 32, 16, 3), np.uint8))
