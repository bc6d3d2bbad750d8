from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from dmt.data.folders import copies, likeness
from tests.data.folders import photo_layout

SCENES = 8


def photo(number: int) -> Image.Image:
    """A scene whose texture is coarse enough to survive what is done to it."""
    image = photo_layout.scene(photo_layout.SHAPES[number % 3], number)[0]
    return image.resize((256, 192), Image.Resampling.BICUBIC)


def recompressed(image: Image.Image, quality: int) -> Image.Image:
    file = BytesIO()
    image.save(file, "JPEG", quality=quality)
    return Image.open(file)


def brighter(image: Image.Image, factor: float) -> Image.Image:
    return image.point(lambda value: value * factor)


def cropped(image: Image.Image, left: float, top: float, right: float, bottom: float) -> Image.Image:
    """Less these shares of its sides."""
    wide, high = image.size
    return image.crop((round(left * wide), round(top * high), round(wide - right * wide), round(high - bottom * high)))


def thumbnail(image: Image.Image) -> copies.Thumbnail:
    return copies.thumbnail(np.asarray(image.convert("RGB")))


def difference(first: Image.Image, second: Image.Image) -> float:
    return copies.difference(thumbnail(first), thumbnail(second))


@pytest.mark.parametrize("number", range(SCENES))
def test_copies_differ_little(number: int) -> None:
    image = photo(number)
    changed = [
        *(recompressed(image, quality) for quality in (60, 95)),
        *(image.resize(size) for size in ((128, 96), (512, 384))),
        *(brighter(image, factor) for factor in (0.9, 1.1)),
        cropped(image, 0.01, 0.01, 0.01, 0.01),
        cropped(image, 0.02, 0.0, 0.0, 0.02),
        recompressed(brighter(cropped(image, 0.01, 0.01, 0.01, 0.01).resize((150, 120)), 1.08), 70),
    ]
    assert max(difference(image, each) for each in changed) <= copies.LIMIT
    assert difference(image, image) == 0


def test_a_crop_is_found_only_after_it_is_aligned(monkeypatch: pytest.MonkeyPatch) -> None:
    image = photo_layout.of_one_scene(2).resize((256, 256))
    crop = cropped(image, 0.02, 0.02, 0.0, 0.0)
    assert difference(image, crop) <= copies.LIMIT
    monkeypatch.setattr(copies, "_STEPS", 0)
    assert difference(image, crop) > copies.LIMIT


def test_different_photos_of_one_scene_differ_more_than_copies() -> None:
    images = [photo_layout.of_one_scene(number) for number in range(6)]
    hashes = [likeness.dhash(np.asarray(image)) for image in images]
    assert len(copies.candidates(hashes)) == 1  # their hashes say that they are alike
    for number, image in enumerate(images):
        assert min(difference(image, other) for other in images[:number] + images[number + 1 :]) > copies.LIMIT


def test_plain_pictures_can_be_compared() -> None:
    plain, other = (Image.new("RGB", (40, 30), (gray, gray, gray)) for gray in (40, 90))
    assert difference(plain, other) == 0  # brightness is equalized; their hashes keep them from being compared
    assert difference(plain, photo_layout.of_one_scene(0)) > copies.LIMIT


def test_pairs_are_found_in_a_group_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    images = [photo_layout.of_one_scene(number) for number in range(12)]
    images += [images[3].resize((90, 90)), brighter(images[3], 1.05), images[7].resize((200, 200))]
    small = [thumbnail(image) for image in images]
    hashes = [likeness.dhash(np.asarray(image)) for image in images]
    assert copies.pairs(small, hashes) == [(3, 12), (3, 13), (7, 14), (12, 13)]
    monkeypatch.setattr(copies, "PIECE", 1)
    assert copies.pairs(small, hashes) == []
