import hashlib

import numpy as np
import torch

from dmt.data.images import embedded
from dmt.data.pixels import scenes


def test_scenes_are_the_same_bits_everywhere() -> None:
    train, test = scenes.scenes(train=40, test=20)
    digest = hashlib.sha256()
    for part in (train, test):
        for plane in (part.images.pixels, part.labels.pixels, part.images.heights, part.images.widths):
            digest.update(plane.numpy().tobytes())
    assert digest.hexdigest()[:16] == "cd49ed47740d6286"


def test_images_and_masks_agree() -> None:
    train, test = scenes.scenes(train=60, test=30)
    assert (len(train), len(test)) == (60, 30)
    assert train.ids[0] == "scene-0001"
    for part in (train, test):
        assert part.images.sizes == part.labels.sizes
        assert part.images.pixels.dtype == part.labels.pixels.dtype == torch.uint8
        assert part.images.pixels.shape == (*part.labels.pixels.shape, 3)
        for position in range(len(part)):
            found = np.unique(part.labels.image(position).numpy()).tolist()
            assert found[0] == 0  # every scene has ground and one to three digits
            assert 2 <= len(found) <= 4
    assert len(set(train.images.sizes)) > 2
    assert np.unique(train.labels.pixels.numpy()).tolist() == list(range(len(scenes.CLASSES)))


def test_fewer_scenes_are_the_first_ones() -> None:
    few, _ = scenes.scenes(train=5, test=1)
    many, _ = scenes.scenes(train=9, test=1)
    assert few.images.digests == many.images.digests[:5]
    assert few.labels.digests == many.labels.digests[:5]
    assert len(set(many.images.digests)) == 9


def test_train_and_test_share_no_digit() -> None:
    first, second = ({image.numpy().tobytes() for image in part.images} for part in embedded.digits())
    assert not first & second
    train, test = scenes.scenes(train=20, test=20)
    assert not set(train.images.digests) & set(test.images.digests)


def test_brightness_alone_does_not_tell_digits_from_ground() -> None:
    train, _ = scenes.scenes(train=60, test=0)
    gray = train.images.pixels.double().mean(1).numpy()
    ink = train.labels.pixels.numpy() > 0
    best = max(_overlap(gray > level, ink) for level in range(60, 200, 10))
    assert 0.1 < best < 0.75


def _overlap(guess: np.ndarray, truth: np.ndarray) -> float:
    return float((guess & truth).sum() / (guess | truth).sum())
