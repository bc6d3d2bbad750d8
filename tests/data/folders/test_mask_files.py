"""Masks of every kind, and what is none."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dmt.data.folders import mask_files
from dmt.errors import DataError
from tests.data.folders import photo_layout, png_files

BINARY = {(0, 0, 0): 0, (255, 255, 255): 1}


@pytest.mark.parametrize("kind", ["indexed", "gray", "gray16", "rgb", "rgba"])
def test_masks_of_every_kind(tmp_path: Path, kind: str) -> None:
    inside = photo_layout.scene("disk", 3)[1]
    path = photo_layout.save(photo_layout.mask_image(inside, 2, kind), tmp_path / "x.png")
    colors = {color: number for number, color in enumerate(photo_layout.MASK_COLORS.values())}
    mask = mask_files.read_mask(path, colors if kind.startswith("rgb") else None, 4)
    assert mask.dtype == np.uint8
    assert np.array_equal(mask, inside * 2)


@pytest.mark.parametrize("kind", ["bits", "binary"])
def test_black_and_white_masks_by_color(tmp_path: Path, kind: str) -> None:
    inside = photo_layout.scene("disk", 3)[1]
    path = photo_layout.save(photo_layout.mask_image(inside, 1, kind), tmp_path / "x.png")
    assert np.array_equal(mask_files.read_mask(path, BINARY, 2), inside)


def test_masks_of_few_bits_and_of_equal_channels(tmp_path: Path) -> None:
    inside = photo_layout.scene("disk", 3)[1]
    path = photo_layout.save(photo_layout.mask_image(inside, 1, "bits"), tmp_path / "bits.png")
    assert np.array_equal(mask_files.read_mask(path, None, 2), inside)
    path = photo_layout.save(Image.fromarray(inside).convert("RGB"), tmp_path / "channels.png")
    assert np.array_equal(mask_files.read_mask(path, None, 2), inside)
    indexed = photo_layout.mask_image(inside, 3, "indexed")
    indexed.save(tmp_path / "two.png", bits=2)
    assert np.array_equal(mask_files.read_mask(tmp_path / "two.png", None, 4), inside * 3)


def test_gray_of_4_bits_keeps_its_numbers(tmp_path: Path) -> None:
    path = png_files.write_row(tmp_path / "x.png", b"\x01\x2f", width=4, bits=4)
    assert mask_files.read_mask(path, None, 16).tolist() == [[0, 1, 2, 15]]


@pytest.mark.parametrize(
    ("values", "classes", "words"),
    [
        ([0, 1, 7], 3, "has the class 7, outside 0..2"),
        ([0, 254, 255], 3, "has the class 254"),
    ],
)
def test_numbers_that_mean_no_class(tmp_path: Path, values: list[int], classes: int, words: str) -> None:
    path = photo_layout.save(Image.fromarray(np.array([values], dtype=np.uint8)), tmp_path / "x.png")
    with pytest.raises(DataError) as caught:
        mask_files.read_mask(path, None, classes)
    assert words in photo_layout.message(caught, path)


def test_255_is_no_label(tmp_path: Path) -> None:
    path = photo_layout.save(Image.fromarray(np.array([[0, 1, 255]], dtype=np.uint8)), tmp_path / "x.png")
    assert mask_files.read_mask(path, None, 2).tolist() == [[0, 1, 255]]
    other = photo_layout.save(Image.fromarray(np.array([[0, 255]], dtype=np.uint8)), tmp_path / "other.png")
    assert mask_files.read_mask(other, None, 2).tolist() == [[0, 255]]  # no object is in this one
    assert mask_files.read_mask(path, {(0, 0, 0): 1, (1, 1, 1): 0, (255, 255, 255): 255}, 2).tolist() == [[1, 0, 255]]


def test_masks_that_cannot_be_meant(tmp_path: Path) -> None:
    drawn = photo_layout.save(photo_layout.photo(), tmp_path / "drawn.png")
    smeared = photo_layout.save(photo_layout.photo(), tmp_path / "smeared.jpg")
    deep = photo_layout.save(Image.fromarray(np.array([[0, 900]], dtype=np.uint16)), tmp_path / "deep.png")
    for path, colors, words in (
        (drawn, None, "drawn in colors"),
        (drawn, BINARY, "which no class has"),
        (smeared, BINARY, "JPEG file, which blurs"),
        (deep, None, "has the class 900"),
        (deep, BINARY, "gray above 255"),
    ):
        with pytest.raises(DataError) as caught:
            mask_files.read_mask(path, colors, 2)
        assert words in photo_layout.message(caught, path)
